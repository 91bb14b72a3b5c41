"""``ishiki doctor`` as it is typed: a line for each check, and the exit code."""

import asyncio
from collections import Counter
from contextlib import aclosing, nullcontext
from typing import Final

import typer
from pydantic import SecretStr

from bots.diagnostics import Blanking
from bots.doctor.checkup import checks
from bots.doctor.examination import examine
from bots.doctor.threads import Loop
from bots.doctor.verdict import Finding
from bots.printing import console, output, print_json, print_line
from bots.settings import Settings, load
from core.content import for_terminal
from core.errors import SettingsRefused

STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
_NAME: Final = 20
"""Columns."""


def run(*, as_json: bool) -> None:
    """Look, tell, and end with 1 where something failed, with 2 where the settings do not do."""
    with output(1):
        try:
            with asyncio.Runner(loop_factory=Loop) as runner:
                counted = runner.run(_examine(load(), as_json=as_json))
        except SettingsRefused as error:
            cure = ".env.example lists all settings; the other checks come when these do"
            _print(Finding("settings", "fail", str(error), cure), as_json=as_json)
            raise typer.Exit(2) from None
        if not as_json:
            print_line(f"{counted['ok']} ok, {counted['warn']} warn, {counted['fail']} fail", "bold")
    if counted["fail"]:
        raise typer.Exit(1)


async def _examine(settings: Settings, *, as_json: bool) -> Counter[str]:
    """How many checks found what, after each was told."""
    blanking = Blanking(value.get_secret_value() for _, value in settings if isinstance(value, SecretStr))
    counted: Counter[str] = Counter()
    async with checks(settings) as looks:
        names = [check.name for check in looks]
        with console.status("") if console.is_terminal else nullcontext() as spinner:
            async with aclosing(examine(looks)) as findings:
                async for finding in findings:
                    counted[finding.status] += 1
                    _print(finding._replace(message=blanking.text(finding.message)), as_json=as_json)
                    names.remove(finding.check)
                    if spinner is not None and names:
                        spinner.update(f"looking at {names[0]} …")
    return counted


def _print(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        print_json(finding._asdict())
        return
    cure = f" → {for_terminal(finding.cure)}" if finding.cure else ""
    told = f"{finding.status:<4}  {finding.check:<{_NAME}}{for_terminal(finding.message)}{cure}"
    print_line(told, STYLES[finding.status])
