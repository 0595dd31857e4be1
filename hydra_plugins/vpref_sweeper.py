"""Hydra takes a sweeper from the package `hydra_plugins` alone; what this one does is in `vpref.runs.sweeper`."""

from __future__ import annotations

from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper


class VprefSweeper(BasicSweeper):
    """Hydra's own grammar of sweeps; the jobs are planned, launched and collected by vpref."""

    def sweep(self, arguments: list[str]) -> Any:
        from hydra.core.override_parser.overrides_parser import OverridesParser

        from vpref.runs.sweeper import Sweep

        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*self._parse_config(), *arguments])
        batches = self.split_arguments(overrides, self.max_batch_size)
        Sweep(self.hydra_context, self.config, self.launcher).run(batches)
