"""`python -m benchmarks NAME`: prints one table, and writes it as JSON with --json."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import dynamic, eager, gpu, gpu_rows, guards, harness, kernels, models, overhead, plans, triton


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = parser.add_subparsers(dest="name", required=True)

    def command(name: str, text: str, *, peer: bool = False) -> argparse.ArgumentParser:
        made = names.add_parser(name, help=text)
        made.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
        if peer:
            made.add_argument("--torch-python", metavar="PATH", help="an interpreter with torch (default: this interpreter)")
        return made

    command("overhead", "import, cold compile, warm call, second process; beside torch's", peer=True).add_argument(
        "--rounds", type=int, default=3
    )
    eager_ = command("eager", "dispatch of small eager calls and the kernels of models; beside torch's", peer=True)
    eager_.add_argument("--rounds", type=int, default=3)
    eager_.add_argument("--only", metavar="TEXT", help="only the figures whose name contains TEXT")
    command("guards", "entry and guards of a warm module of up to 100 parameters, beside its kernels")
    command("dynamic", "code for all sizes against code for one size; one compilation against one per size").add_argument(
        "--rounds", type=int, default=15
    )
    code = command("triton", "the machine code of Triton kernels for GPUs: registers, spills, widest access, matrix instructions")
    code.add_argument("-k", metavar="TEXT", dest="text", help="only the programs whose name contains TEXT, or the programs of that group")
    code.add_argument("--sm", type=int, nargs="+", default=list(plans.COUNTED), choices=list(plans.TARGETS), help="targets")
    code.add_argument("--of", nargs="+", default=["programs"], choices=list(plans.SOURCES), help="where the kernels come from")
    device = command("gpu", "programs on a CUDA device beside torch eager and torch.compile", peer=True)
    device.add_argument("-k", metavar="TEXT", dest="text", help="only the rows whose name contains TEXT, or the rows of that group")
    device.add_argument("--seconds", type=float, default=400, help="no row begins after this time")
    device.add_argument("--scale", type=int, default=1, help="divisor of the sizes, for a rehearsal on the emulated device")
    modes = ["default", "reduce-overhead", "max-autotune-no-cudagraphs"]
    device.add_argument("--modes", nargs="+", default=modes, choices=[*modes, "max-autotune-tma"],
                        help="modes of compile that are measured; max-autotune-tma also tries descriptors of matrices")
    device.add_argument("--out", type=Path, metavar="FOLDER", help="a folder for gpu.json, written after each row, and logs")
    for name, text in (
        ("kernels", "graphs of a few ops beside torch.compile, and numpy's copy of the same bytes"),
        ("models", "networks beside torch's best mode, ONNX Runtime and OpenVINO; time and memory"),
    ):
        made = command(name, text, peer=True)
        made.add_argument("-k", metavar="TEXT", help="only the rows whose name contains TEXT, or the rows of that group")
        made.add_argument("--threads", type=int, nargs="+", default=[1, 2])
        made.add_argument("--runs", type=int, default=3, help="runs of a row; two of three decide")
        made.add_argument("--mode", default="default", help="framejit's mode of torch.compile")
    return parser


def main() -> int:
    """Run one benchmark. Result: 0 if every figure with a limit keeps it, 1 otherwise."""
    args = _parser().parse_args()
    conditions = harness.calm()
    torch_at = overhead.torch_python(args.torch_python) if "torch_python" in args else None
    options = {"torch_at": torch_at, "text": args.k, "threads": args.threads, "runs": args.runs, "mode": args.mode} if "k" in args else {}
    if args.name == "kernels":
        rows = kernels.measured(**options)
        harness.show(args.name, kernels.table(rows), rows, conditions, args.json)
        return 0 if all(row.holds is not False for row in rows) else 1
    if args.name == "models":
        networks = models.measured(**options)
        harness.show(args.name, models.table(networks), networks, conditions, args.json)
        return 0 if not any(row.misses for row in networks) else 1
    if args.name == "gpu":
        given = {"text": args.text, "seconds": args.seconds, "scale": args.scale, "out": args.out, "modes": args.modes}
        programs = gpu.measured(python=sys.executable, torch_at=torch_at, rows=gpu_rows.ROWS, **given)
        harness.show(args.name, gpu.table(programs), programs, conditions, args.json)
        return 0 if not any(m.errors for m in programs) else 1
    if args.name == "triton":
        codes = triton.measured(args.text, args.sm, sources=args.of)
        harness.show(args.name, triton.table(codes), codes, conditions, args.json)
        return 0 if not any(row.faults for row in codes) else 1
    if args.name == "overhead":
        found = overhead.figures(rounds=args.rounds, torch_at=torch_at)
    elif args.name == "eager":
        found = eager.figures(rounds=args.rounds, torch_at=torch_at, only=args.only)
    elif args.name == "dynamic":
        found = dynamic.figures(rounds=args.rounds)
    else:
        found = guards.figures()
    harness.report(args.name, found, conditions, args.json)
    return 0 if all(figure.holds is not False for figure in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
