"""One job of Hydra's: its settings checked, its folder kept, its end written down however it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from vpref.errors import Ended, Interrupted, VprefError
from vpref.runs import schema
from vpref.runs.folder import RunFolder

log = logging.getLogger("vpref")


def execute(verb: str, config: DictConfig, body: Callable[[Any, RunFolder], None]) -> None:
    """Run a verb's body. Its errors go to the job's own log and status (Hydra 1.3 writes neither), and on: of a
    single run as Ended, of a job in a sweep as they are, so that Hydra goes on with the other jobs."""
    hydra = HydraConfig.get()
    alone = hydra.mode != RunMode.MULTIRUN
    folder = RunFolder(Path(hydra.runtime.output_dir), schema.plain(config), list(hydra.overrides.task))
    folder.status("running")
    try:
        body(schema.typed(config, schema.SCHEMAS[verb]), folder)
    except Interrupted as stop:
        folder.status("interrupted", str(stop))
        raise Ended(stop) from stop  # ends a sweep too, not only this job of it
    except VprefError as error:
        log.error("%s", error, exc_info=error)
        folder.status("failed", str(error))
        if alone:
            raise Ended(error) from error
        raise
    except BaseException as error:
        log.exception("the run failed")
        folder.status("failed", f"{type(error).__name__}: {error}")
        raise
    else:
        folder.status("finished")
    finally:
        folder.close()
