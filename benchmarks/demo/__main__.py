"""`python -m benchmarks.demo` (`make demo`): both parts, one table, and the commands that show the compiler's decisions."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.demo import gpt, minilm, search, training
from benchmarks.demo.rows import Row, table
from benchmarks.harness import calm

LOOK_INSIDE = """\
Look inside, before any program that uses framejit:
  TORCH_LOGS=graph_breaks   where a graph ended, why, and a hint
  TORCH_LOGS=recompiles     which guard failed, old and new value
  TORCH_LOGS=output_code    the generated C++, kernel by kernel
  TORCH_LOGS=help           everything else (see TORCH_LOGS.md)
  TORCH_COMPILE_DEBUG=1     every stage of every compilation, in a folder"""


def main() -> int:
    """Run the demo. Result: 0 if eager and compiled agree everywhere and the loss fell, else 1."""
    console = Console(highlight=False)
    config = gpt.Config()
    absent = minilm.missing()
    started = time.perf_counter()
    found: search.Result | None = None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        total = config.steps + (search.steps() if absent is None else 0)
        task = progress.add_task("loading", total=total)

        def advance(doing: str) -> None:
            progress.update(task, advance=1, description=doing)

        if absent is None:
            found = search.run(advance)
        trained = training.run(advance, config)
        progress.update(task, description="measuring the machine")
        conditions = calm()
    if found is not None:
        _show_answers(console, found)
    _show_training(console, trained)
    first = found.rows if found is not None else [Row("MiniLM", missing=absent)]
    caption = (
        f"MiniLM: {search.BATCH} x {search.LENGTH} tokens a call. GPT step: forward, backward, AdamW on "
        f"{config.batch} x {config.context} bytes. Medians, measured in turn. "
        "Break-even: calls until the time saved exceeds the compile time."
    )
    console.print(table([*first, *trained.rows], caption))
    console.print(f"{conditions}\ntook {time.perf_counter() - started:.0f} s\n")
    console.print(LOOK_INSIDE, markup=False)
    ok = trained.agrees and trained.learns and (found is None or found.agrees)
    return 0 if ok else 1


def _show_answers(console: Console, found: search.Result) -> None:
    console.print(f"\n[bold]Search in Python's documentation[/bold], {search.PARAGRAPHS} paragraphs")
    for answer in found.answers:
        shown = answer.paragraph.text
        shown = shown if len(shown) <= 220 else shown[:217] + "..."
        console.print(f"  [cyan]{answer.question}[/cyan]  ({answer.score:.2f}, topic {answer.paragraph.topic!r})")
        console.print(f"    {shown}", markup=False)
    worst = ", ".join(f"{mode} {value:.1e}" for mode, value in found.disagreement.items())
    console.print(f"  embeddings against eager's, largest 1 - cosine: {worst}  {_verdict(found.agrees)}")


def _show_training(console: Console, trained: training.Result) -> None:
    eager, compiled = trained.final
    console.print(f"\n[bold]A GPT on the same text[/bold], {len(trained.eager)} AdamW steps from one seed")
    console.print(
        f"  loss, nats a byte: {trained.eager[0]:.3f} -> eager {eager:.3f}, compiled {compiled:.3f}; "
        f"largest difference in the first {training.EARLY_STEPS} steps {trained.early_difference:.1e}  "
        f"{_verdict(trained.agrees and trained.learns)}"
    )
    for warning in trained.warnings:
        console.print(f"  warning: {warning}", markup=False)
    console.print()


def _verdict(ok: bool) -> str:
    return "[green]agree[/green]" if ok else "[red]DISAGREE[/red]"


if __name__ == "__main__":
    raise SystemExit(main())
