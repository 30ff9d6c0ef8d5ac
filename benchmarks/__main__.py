"""`python -m benchmarks NAME`: prints one table, and writes it as JSON with --json."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import dynamic, eager, guards, harness, kernels, models, overhead


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = parser.add_subparsers(dest="name", required=True)
    one = names.add_parser("overhead", help="import, cold compile, warm call, second process; beside torch's")
    one.add_argument("--torch-python", metavar="PATH", help="an interpreter with torch (default: this interpreter)")
    one.add_argument("--rounds", type=int, default=3)
    two = names.add_parser("models", help="MiniLM and a GPT training step, compiled against eager; beside torch's")
    two.add_argument("--torch-python", metavar="PATH", help="an interpreter with torch (default: this interpreter)")
    two.add_argument("--rounds", type=int, default=41)
    two.add_argument("--only", choices=("minilm", "gpt"))
    three = names.add_parser("eager", help="dispatch of small eager calls and the kernels of models; beside torch's")
    three.add_argument("--torch-python", metavar="PATH", help="an interpreter with torch (default: this interpreter)")
    three.add_argument("--rounds", type=int, default=3)
    three.add_argument("--only", metavar="TEXT", help="only the figures whose name contains TEXT")
    four = names.add_parser("guards", help="entry and guards of a warm module of up to 100 parameters, beside its kernels")
    five = names.add_parser("dynamic", help="code for all sizes against code for one size; one compilation against one per size")
    five.add_argument("--rounds", type=int, default=15)
    six = names.add_parser("kernels", help="graphs of a few ops beside torch.compile, and numpy's copy of the same bytes")
    six.add_argument("--torch-python", metavar="PATH", help="an interpreter with torch (default: this interpreter)")
    six.add_argument("-k", metavar="TEXT", help="only the rows whose name contains TEXT, or the rows of that group")
    six.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    six.add_argument("--runs", type=int, default=3, help="runs of a row; two of three decide")
    six.add_argument("--mode", default="default", help="framejit's mode of torch.compile")
    for each in (one, two, three, four, five, six):
        each.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    return parser


def main() -> int:
    """Run one benchmark. Result: 0 if every figure with a limit keeps it, 1 otherwise."""
    args = _parser().parse_args()
    conditions = harness.calm()
    if args.name == "kernels":
        torch_at = overhead.torch_python(args.torch_python)
        rows = kernels.measured(torch_at=torch_at, threads=args.threads, text=args.k, runs=args.runs, mode=args.mode)
        harness.show("kernels", kernels.table(rows), rows, conditions, args.json)
        return 0 if all(row.holds is not False for row in rows) else 1
    if args.name == "overhead":
        torch_at = overhead.torch_python(args.torch_python)
        found = overhead.figures(rounds=args.rounds, torch_at=torch_at)
    elif args.name == "eager":
        torch_at = overhead.torch_python(args.torch_python)
        found = eager.figures(rounds=args.rounds, torch_at=torch_at, only=args.only)
    elif args.name == "dynamic":
        found = dynamic.figures(rounds=args.rounds)
    elif args.name == "guards":
        found = guards.figures()
    else:
        torch_at = overhead.torch_python(args.torch_python)
        found = models.figures(rounds=args.rounds, torch_at=torch_at, only=args.only)
    harness.report(args.name, found, conditions, args.json)
    return 0 if all(figure.holds is not False for figure in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
