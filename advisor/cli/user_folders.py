"""Where a user keeps own plugins, rules and machine models: ``~/.config/gapwatch`` and ``GAPWATCH_PLUGINS``."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.support.disk_cache import user_folder

if TYPE_CHECKING:
    import argparse

    from advisor.extension.host import PluginHost
    from advisor.model.records import Advice

PLUGINS_VARIABLE = "GAPWATCH_PLUGINS"
#: What ``gapwatch machines probe`` calls its model.
_PROBED = "probed"


def config_folder() -> Path:
    """Return the user's configuration directory; it need not exist."""
    return user_folder("XDG_CONFIG_HOME", "~/.config")


def refuse_foreign_config(path: Path) -> None:
    """Raise ``UsageError`` where somebody else could have written the user's own configuration, which names plugins."""
    from advisor.model.errors import UsageError

    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if status.st_uid not in (0, os.geteuid()):
        raise UsageError(f"{path} is not read: it belongs to user {status.st_uid}, neither to you nor to root")
    if status.st_mode & stat.S_IWOTH:
        raise UsageError(f"{path} is not read, because everybody may write to it; check its contents and chmod o-w it")


def plugin_folders() -> tuple[Path, ...]:
    """Return the directories of plugin files: the user's own if there is one, then those of the environment."""
    own = config_folder() / "plugins"
    named = [Path(folder) for folder in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if folder]
    return tuple([own] if own.is_dir() else []) + tuple(named)


def add_rules_argument(parser: argparse.ArgumentParser) -> None:
    """Give a command the option to add files of rules to those of ``rule_files``."""
    parser.add_argument(
        "--rules", metavar="FILE", type=Path, action="append", default=[], help="Additional rule file; repeatable"
    )


def rule_files() -> tuple[Path, ...]:
    """Return the user's own rule files, which hold in every run."""
    return tuple(sorted((config_folder() / "rules").glob("*.yaml")))


def machine_folders() -> tuple[Path, ...]:
    """Return the user's folder of machine models, if there is one."""
    own = config_folder() / "machine_models"
    return (own,) if own.is_dir() else ()


def resolve_machine(name: str | None) -> str | None:
    """Return the file of the user's own machine model of that name, else the name itself.

    ``host`` is the probed model from the time on when this machine was probed.
    """
    if name == "host" and (probed := find_probed_model()):
        return str(probed)
    files = [folder / f"{name}.yaml" for folder in machine_folders()]
    return next((str(file) for file in files if name and file.is_file()), name)


def find_probed_model() -> Path | None:
    """Return the model that ``gapwatch machines probe`` made of this machine; None before, and of another one.

    Home directories are shared by different machines: sockets, cores, vectors and memory have to be those found here.
    """
    files = [file for folder in machine_folders() if (file := folder / f"{_PROBED}.yaml").is_file()]
    if not files:
        return None
    from advisor.analysis.machines import models
    from advisor.model.errors import AdvisorError

    for file in files:
        try:
            if models.fits_host(models.load_machine(file)):
                return file
        except AdvisorError:
            continue
    return None


def load_host() -> PluginHost:
    """Return the host with all plugins of installed packages and of the directories."""
    from advisor.cli import supervision
    from advisor.extension import host

    return host.load_plugins(plugin_folders(), supervision.plugins_left_out(), asking=supervision.announce_plugin)


def advise_path(path: Path, binary: Path | None = None) -> Advice:
    """Return the advice on the run at a path, by the rules and plugins of the user as well.

    ``binary`` is the program's file, for a recording that does not name it.
    """
    from advisor import pipeline

    return pipeline.advise([path], pipeline.Options(rules=rule_files(), binary=binary), load_host())
