"""Every config that ships composes and makes settings; what does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

import vpref
from vpref.errors import ConfigError
from vpref.runs import schema
from vpref.settings import EvaluateSettings, GenerateSettings, ModelSettings

CONF = Path(vpref.__file__).parents[1] / "conf"
MODELS = sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
NEEDED = {"compatible": ["{}.name=m", "{}.base_url=http://localhost:1/v1"], "transformers": ["{}.name=org/m"]}
GROUPS = [
    (f"{folder.name}{place}", path.stem)
    for folder in sorted(CONF.iterdir())
    if folder.is_dir() and folder.name not in ("model", "hydra", "ablation", "__pycache__")
    for path in sorted(folder.glob("*.yaml"))
    for place in (["@simulator"] if folder.name == "profile" else [""])
]


def settings_of(verb: str, *overrides: str) -> object:
    schema.register()
    with initialize_config_module("vpref.conf", version_base="1.3"):
        return schema.typed(compose(verb, overrides=list(overrides)), schema.SCHEMAS[verb])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_evaluated_and_play_every_role(name: str) -> None:
    more = [override.format("evaluated") for override in NEEDED.get(name, [])]
    evaluating = settings_of("evaluate", "dataset=x", f"model@evaluated={name}", *more)
    assert isinstance(evaluating, EvaluateSettings)
    assert isinstance(evaluating.evaluated, ModelSettings)
    for role in ("model", "generator", "reviewer", "revisor", "responder"):
        more = [override.format(f"pipeline.{role}") for override in NEEDED.get(name, [])]
        generating = settings_of("generate", f"model@pipeline.{role}={name}", *more)
        assert isinstance(generating, GenerateSettings)
        assert getattr(generating.pipeline, role) == evaluating.evaluated


@pytest.mark.parametrize(("group", "option"), GROUPS)
def test_every_option_composes(group: str, option: str) -> None:
    more = ["data.root=x"] if option == "visual_genome" else []
    quoted = f"'{option}'" if option.isdigit() else option
    assert isinstance(settings_of("generate", f"{group}={quoted}", *more), GenerateSettings)


@pytest.mark.parametrize("option", sorted(path.stem for path in (CONF / "ablation").glob("*.yaml")))
def test_every_ablation_composes(option: str) -> None:
    settings = settings_of("evaluate", "dataset=x", f"ablation={option}")
    assert isinstance(settings, EvaluateSettings)
    assert bool(settings.ablation.label) == (option != "nothing")


@pytest.mark.parametrize("verb", ["report", "simulate", "demo"])
def test_every_verb_composes(verb: str) -> None:
    assert isinstance(settings_of(verb), schema.SCHEMAS[verb])


def test_the_defaults_of_yaml_and_of_settings_agree() -> None:
    """A default is said in YAML for people and in settings for code; they must not differ."""
    composed = settings_of("generate")
    assert isinstance(composed, GenerateSettings)
    bare = GenerateSettings()
    for name in ("data", "driver", "tracking", "categories", "variants", "samples", "preview", "dry_run"):
        assert getattr(composed, name) == getattr(bare, name)
    for name in ("review", "max_revisions", "attempts", "message_order"):
        assert getattr(composed.pipeline, name) == getattr(bare.pipeline, name)


def test_a_mandatory_value_is_asked_for_by_name() -> None:
    with pytest.raises(ConfigError, match="dataset"):
        settings_of("evaluate")


def test_the_simulators_name_is_kept_for_it() -> None:
    with pytest.raises(ConfigError, match="another server name"):
        ModelSettings(name="m", server="simulator/12345678")


def test_a_config_for_the_manifest_holds_plain_values() -> None:
    schema.register()
    with initialize_config_module("vpref.conf", version_base="1.3"):
        config = compose("generate")
    plain = schema.plain(config)
    assert plain["pipeline"]["model"]["api"] == "responses"
    assert OmegaConf.create(plain) is not None


def test_slugs_are_safe_and_distinct() -> None:
    texts = ["a=1,b=2", "a=1/b=2", "a=1 b=2", "a" * 200, "a" * 201, "", "ä", "../..", "a=1"]
    slugs = [schema.slug(text) for text in texts]
    assert len(set(slugs)) == len(texts)
    assert all("/" not in one and len(one) <= 110 and not one.startswith(".") for one in slugs)
    assert slugs[-1] == "a=1"
