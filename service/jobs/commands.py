"""What `sluice backfill`, `reconcile` and `repair` do: options and settings in, an exit code out.

0 done (or clean), 1 failed, 3 incomplete, 4 differences found above the threshold; 75 and 78 as for the service. Errors
are raised as SluiceError; `exit_code_of` names the code of each.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from service.config import Settings
from service.errors import Fatal
from service.jobs import report
from service.jobs.backfill import Backfill, BackfillResult
from service.jobs.explain import explain
from service.jobs.faults import BadInput
from service.jobs.options import BackfillOptions, ReconcileOptions, RepairOptions, SourceOptions
from service.jobs.reconcile import Reconcile, ReconcileResult
from service.jobs.reconcile import summary as reconcile_summary
from service.jobs.repair import Repair, RepairResult
from service.jobs.session import session
from service.jobs.task_faults import SPARK_FAULTS, fault_of

log = structlog.get_logger(__name__)

DONE: Final = 0
INCOMPLETE: Final = 3
DIFFERENT: Final = 4


def backfill(options: BackfillOptions, settings: Settings) -> int:
    """Load history. Writes summary.json and report.html; gives the exit code."""
    folder = report.prepare(options.report)
    with session(options.engine) as spark, _translated():
        job = Backfill(spark, options, settings)
        if options.explain:
            found = explain(job, options)
            _say(found.text())
            report.write_explanation(folder, found)
            return DONE
        result = job.run()
    code = DONE if result.complete and not result.left_out else INCOMPLETE
    report.write_backfill(folder, _backfill_summary(result, options, code))
    _say(_backfill_text(result, folder))
    return code


def reconcile(options: ReconcileOptions, settings: Settings) -> int:
    """Compare stream and Cosmos. Writes summary.json, report.html and the differences; gives the exit code."""
    folder = report.prepare(options.report)
    with session(options.engine) as spark, _translated():
        job = Reconcile(spark, options, settings)
        try:
            result = job.run()
            assert job.differences is not None  # noqa: S101 - set by a run that came to its end
            code = _reconcile_code(result, options)
            report.write_reconcile(folder, reconcile_summary(result, options, code), job.differences)
        finally:
            job.close()
    _say(_reconcile_text(result, folder))
    return code


def repair(options: RepairOptions, settings: Settings) -> int:
    """Mend what a reconciliation found. Writes repair.json into its folder; gives the exit code."""
    folder = Path(options.report)
    source, up_to = _reconciled(folder)
    with session(options.engine) as spark, _translated():
        result = Repair(spark, options, source, up_to, settings).run()
    code = DONE if result.dry_run or result.complete else INCOMPLETE
    found = {"job": "repair", "exit_code": code, **asdict(result)}
    found["tally"] = result.tally.encode()
    report.write_repair(folder, found)
    _say(_repair_text(result))
    return code


def exit_code_of(error: BaseException) -> int:
    """The exit code for what a command raised."""
    return error.exit_code if isinstance(error, Fatal) else 1


class _translated:  # noqa: N801 - reads as a word of the `with` statement
    """What Spark raises, as ours: a task's own error is found in its text."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SPARK_FAULTS):
            raise fault_of(error) from error


def _reconciled(folder: Path) -> tuple[SourceOptions, str]:
    """The source that a reconciliation read. Raises BadInput where there is none."""
    try:
        options = orjson.loads((folder / "summary.json").read_bytes())["options"]
        return SourceOptions(**options["source"]), str(options["up_to"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(
            f"--report: {folder} holds no reconciliation. Run `sluice reconcile --report {folder}` first."
        ) from None


def _reconcile_code(result: ReconcileResult, options: ReconcileOptions) -> int:
    if result.left_out:
        return INCOMPLETE
    wrong = max(result.differences, result.unaccounted)
    return DONE if wrong <= options.threshold and result.closes else DIFFERENT


def _backfill_summary(result: BackfillResult, options: BackfillOptions, code: int) -> dict[str, Any]:
    tally = result.tally.encode()
    return {
        "job": "backfill",
        "exit_code": code,
        "run_id": result.run_id,
        "complete": result.complete and not result.left_out,
        "dry_run": result.dry_run,
        "units": result.units,
        "units_done": result.units_before + result.units_done,
        "units_before": result.units_before,
        "records": tally["records"],
        "partitions": tally["partitions"],
        "ru": tally["ru"],
        "left_out": result.left_out,
        "empty": list(result.empty),
        "closing_deletes": dict(result.deletes.records),
        "closing_unseen": result.unseen,
        "held_seconds": result.held_seconds,
        "seconds": round(result.seconds, 1),
        "options": asdict(options),
    }


def _backfill_text(result: BackfillResult, folder: Path) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(result.tally.records.items()) if count)
    lines = [f"run {result.run_id}: {result.units_before + result.units_done} of {result.units} units done; {counts}"]
    lines += [f"left out: {name}: {why}" for name, why in result.left_out.items()]
    lines += [f"empty: {name}" for name in result.empty[:10]]
    if result.unseen:
        lines.append(
            f"{sum(result.unseen.values())} events beyond the bound are not in the source yet. If some of them are"
            " deletes that the live consumer has done, their documents may be back: reconcile later, and repair."
        )
    if result.left_out:
        lines.append("Mend or remove these files and run it again: their units are not done.")
    return "\n".join([*lines, f"report in {folder}"])


def _reconcile_text(result: ReconcileResult, folder: Path) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(result.states.items()))
    lines = [counts or "no documents", "the balance closes" if result.closes else "the balance does NOT close"]
    lines += [f"left out: {name}: {why}" for name, why in result.left_out.items()]
    return "\n".join([*lines, f"{result.differences} differences; report in {folder}"])


def _repair_text(result: RepairResult) -> str:
    wanted = ", ".join(f"{count} {state}" for state, count in result.wanted.items()) or "nothing"
    if result.dry_run:
        return f"would mend: {wanted}. Say --write to do it."
    counts = ", ".join(f"{count} {name}" for name, count in sorted(result.tally.records.items())) or "nothing"
    return f"to mend: {wanted}; done: {counts}"


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the command's answer
