"""Random groups of statements in the style of users' programs: decorators, forwarded arguments, closures that share
state, pipelines of generators, dataclasses, nested patterns, counters on classes, registries, shapes as text.
"""

from __future__ import annotations

from tests.dynamo.fuzz.paragraphs import Paragraphs
from tests.dynamo.fuzz.sentences import indented
from tests.dynamo.fuzz.words import Scope


class Chapters(Paragraphs):
    """Adds groups of statements to the choices of `statement`."""

    def statement(self, scope: Scope, returns: str | None) -> list[str]:
        if self.budget > 1 and self.chance(0.12):
            chosen = self.rng.choice((self._decorated, self._forwarded, self._shared_state, self._pipeline, self._dataclass,
                                      self._pattern, self._counted_class, self._registry, self._shapes, self._sets, self._kept,
                                      self._view_chain, self._context_class))  # fmt: skip
            return chosen(scope, returns)
        return super().statement(scope, returns)

    # -- functions ---------------------------------------------------------------------------------------------
    def _decorated(self, s: Scope, r: str | None) -> list[str]:
        e, deco, name = self.expr, s.fresh("T", "deco"), s.fresh("T", "fn")
        before = self.pick("note(fn.__name__)", "calls.append(len(args))", "shout(sorted(kwargs))", "wrapper.calls += 1")
        after = self.pick("return found", "return found + len(calls)", "note(found.shape)\n        return found", "return found * 1")
        wraps = self.pick("@functools.wraps(fn)", "@functools.wraps(fn)", "@functools.wraps(fn, updated=())")
        lines = [f"def {deco}(fn=None, *, by={e('I', s, 1)}):", "    if fn is None:", f"        return lambda fn: {deco}(fn, by=by)",
                 "    calls = []", f"    {wraps}", "    def wrapper(*args, **kwargs):", f"        {before}",
                 self.pick("        found = fn(*args, **kwargs)", "        found = fn(args[0] * by, *args[1:], **kwargs)"),
                 *[f"        {line}" for line in after.split("\n        ")], "    wrapper.calls = 0", "    return wrapper",
                 self.pick(f"@{deco}", f"@{deco}(by={e('I', s, 1)})", f"@{deco}()"),
                 f"def {name}(x, n=1, **rest):", f"    return x {self.pick('+', '-', '*')} n"]  # fmt: skip
        made = s.fresh("T")
        lines.append(f"{made} = {name}({e('T', s, 1)}, {self.pick(e('I', s, 1), 'n=' + e('I', s, 1), '**{}', 'k=2')})")
        s.add("T", made)
        return [*lines, *([f"note({name}.calls)"] if self.chance(0.5) else [])]

    def _forwarded(self, s: Scope, r: str | None) -> list[str]:
        e, inner, outer = self.expr, s.fresh("I", "inner"), s.fresh("I", "outer")
        passed = self.pick("*args, **kwargs", "*args[1:], **kwargs", "*args, **{**kwargs, 'k': 3}", "args[0], **kwargs", "*args")
        changed = self.pick("kwargs.pop('k', None)", "kwargs['k'] = len(args)", "kwargs.setdefault('k', 2)", "args = args[::-1]", "pass")
        call = self.pick(f"{e('I', s, 1)}, {e('I', s, 1)}", f"*{e('L', s, 1)}", f"{e('I', s, 1)}, k={e('I', s, 1)}",
                         f"{e('I', s, 1)}, **{e('D', s, 1)}", f"a={e('I', s, 1)}")  # fmt: skip
        return [f"def {inner}(a, b=2, /, *c, k=1, **more):", "    return a, b, c, k, sorted(more)",
                f"def {outer}(*args, **kwargs):", f"    {changed}", f"    return {inner}({passed})",
                f"note({outer}({call}))"]  # fmt: skip

    def _shared_state(self, s: Scope, r: str | None) -> list[str]:
        e, make = self.expr, s.fresh("I", "make")
        body = [f"total = {e('I', s, 1)}", "seen = []", "def add(by=1):", "    nonlocal total",
                self.pick("    total += by", "    total, before = total + by, total", "    total = total * 2 + by"),
                self.pick("    seen.append(total)", "    shout(total)", "    note(lambda: total)"), "    return total",
                "def reset():", "    nonlocal total, seen", f"    total, seen = {e('I', s, 0)}, []",
                "    def again():", "        nonlocal total", "        total -= 1", "        return add()", "    return again",
                self.pick("return add, reset", "return [add, reset]", "return add, (lambda: reset())")]  # fmt: skip
        add, reset = s.fresh("I", "add"), s.fresh("I", "reset")
        uses = [f"note({add}({e('I', s, 1)}))", f"note({reset}()())", f"note([{add}(i) for i in {e('L', s, 1)} if i > 0])",
                f"note({add}.__closure__[1].cell_contents)", "shout(8)", f"kept.append({add})"]  # fmt: skip
        return [f"def {make}():", *indented(body), f"{add}, {reset} = {make}()", *self.rng.sample(uses, 3)]

    def _pipeline(self, s: Scope, r: str | None) -> list[str]:
        e, name = self.expr, s.fresh("I", "stage")
        body = ["received = []", "try:", "    while len(received) < 3:",
                f"        item = yield {self.pick('len(received)', 'x * len(received)', 'received[:]')}",
                self.pick("        if item is None: continue_ = True", "        if item == 2: return received", "        note(item)"),
                "        received.append(item)",
                *self.rng.choice((["except ValueError as error:", "    received.append(error.args)", "    yield -1"],
                                  ["except GeneratorExit:", "    note('exit')", "    raise"], ["except KeyError:", "    pass"])),
                *self.rng.choice(([], ["else:", "    note('all')"])), "finally:",
                self.pick("    note(received)", "    shout(len(received))"), "return received"]  # fmt: skip
        it, whole = f"{name}it", s.fresh("I", "whole")
        uses = [f"note({it}.send({e('I', s, 1)}))", f"note({it}.throw(ValueError({e('I', s, 1)})))", f"note(next({it}, 'end'))",
                f"{it}.close()", "shout(9)", f"note(sum(1 for v in {it} if v is not None))", f"note({it}.gi_frame is None)"]  # fmt: skip
        lines = [f"def {name}(x):", *indented(body)]
        if self.chance(0.4):
            lines += [f"def {whole}(x):", f"    got = yield from {name}(x)", "    note(got)", "    yield from (v for v in got or ())"]
            lines.append(f"{it} = {whole}({e('T', s, 1)})")
        else:
            lines.append(f"{it} = {name}({e('T', s, 1)})")
        return [*lines, f"note(next({it}))", *self.rng.sample(uses, self.rng.randint(2, 4))]

    # -- classes -----------------------------------------------------------------------------------------------
    def _dataclass(self, s: Scope, r: str | None) -> list[str]:
        e, name, made = self.expr, s.fresh("O", "D"), s.fresh("O", "d")
        head = self.pick("@dataclasses.dataclass", "@dataclasses.dataclass(frozen=True)", "@dataclasses.dataclass(order=True)",
                         "@dataclasses.dataclass(slots=True)", "@dataclasses.dataclass(eq=False)")  # fmt: skip
        body = ["n: int", f"size: int = {e('I', s, 0)}", "parts: list = dataclasses.field(default_factory=list, compare=False)",
                *(["def __post_init__(self):", "    self.parts.append(self.n)", *self.rng.choice(([], ["    self.size += 1"]))]
                  if self.chance(0.6) else [])]  # fmt: skip
        uses = [f"note(({made}.n, {made}.size))", f"note({made} == {name}({e('I', s, 1)}))", f"{made}.n = {e('I', s, 1)}",
                f"note(dataclasses.replace({made}, n={e('I', s, 1)}).parts)", f"note({made} < {name}(3))",
                f"note(dataclasses.asdict({made}))",
                f"note([f.name for f in dataclasses.fields({made})])", f"note({{{made}: 1}})", f"{made}.parts += [1]"]  # fmt: skip
        return [head, f"class {name}:", *indented(body), f"{made} = {name}({e('I', s, 1)})", *self.rng.sample(uses, 2)]

    def _counted_class(self, s: Scope, r: str | None) -> list[str]:
        e, name = self.expr, s.fresh("O", "K")
        body = ["made, limit = 0, 2", "registry = {}", "def __init__(self, n):",
                self.pick("    type(self).made += 1", f"    {name}.made += n"),
                "    self.n = n", "    self.registry[n] = self", "@classmethod", "def of(cls, *ns):",
                "    return [cls(n) for n in ns if cls.made < cls.limit]", "def __enter__(self):", "    type(self).limit += 1",
                "    return self", "def __exit__(self, *error):", "    type(self).limit -= 1",
                f"    return {self.pick('True', 'None', 'self.n > 1')}"]
        uses = [[f"note(len({name}.of({e('I', s, 1)}, {e('I', s, 1)})))"], [f"note(sorted({name}.registry))"],
                [f"{name}.limit = {e('I', s, 1)}"],
                [f"with {name}({e('I', s, 1)}) as held:", "    note(held.limit)", *self.inside(s, None)], [f"setattr({name}, 'made', 0)"],
                [f"{name}.extra = lambda self: self.n", f"note({name}(1).extra())"], [f"del {name}.limit"], ["shout(10)"]]  # fmt: skip
        return [f"class {name}:", *indented(body), *(line for use in self.rng.sample(uses, 3) for line in use), f"note({name}.made)"]

    def _context_class(self, s: Scope, r: str | None) -> list[str]:
        e, name = self.expr, s.fresh("I", "Ctx")
        body = ["def __init__(self, n):", "    self.n, self.depth = n, 0", "def __enter__(self):", "    self.depth += 1",
                self.pick("    return self", "    shout(self.depth)", "    return self.depth"), "def __exit__(self, kind, error, trace):",
                "    self.depth -= 1", self.pick("    note(kind)", "    note(trace is None)", "    shout(type(error).__name__)"),
                self.pick("    return isinstance(error, LookupError)", "    if error: raise Oops(self.n) from error",
                          "    return False")]  # fmt: skip
        made = f"{name.lower()}made"
        return [f"class {name}:", *indented(body), f"{made} = {name}({e('I', s, 1)})",
                f"with {made}, {self.pick(made, f'{name}(1)', 'contextlib.suppress(Oops)')}:", *self.inside(s, r),
                *([f"    note({e('L', s, 0)}[{e('I', s, 1)}])"] if self.chance(0.4) else []), f"note({made}.depth)"]  # fmt: skip

    # -- data --------------------------------------------------------------------------------------------------
    def _pattern(self, s: Scope, r: str | None) -> list[str]:
        e, a, b = self.expr, s.fresh("I", "p"), s.fresh("I", "p")
        subject = self.pick(lambda: f"({e('I', s, 1)}, {e('L', s, 1)})", lambda: f"{{'k': {e('U', s, 1)}, 'n': {e('I', s, 1)}}}",
                            lambda: f"[{e('O', s, 1)}, {e('D', s, 1)}]", lambda: f"Pair({e('I', s, 1)}, {e('L', s, 1)})")  # fmt: skip
        cases = [f"case (0 | 1 as {a}, [{b}, *_]):", f"case {{'k': ({a}, str() as {b})}}:", f"case [Base(n={a}), {{'a': {b}}}]:",
                 f"case Pair({a}, [*_, {b}]):", f"case (int({a}), [] as {b}) | [{a}, [_, *{b}]]:",
                 f"case {{'n': int() as {a}, **{b}}} if {a} > 0:", f"case ({a}, {b}) if shout({a} is None):"]  # fmt: skip
        chosen = self.rng.sample(cases, 3)
        lines = [f"match {subject}:"]
        for case in chosen:
            lines += [f"    {case}", f"        note(({a}, {b}))"]
        return [*lines, "    case other:", "        note(type(other).__name__)"]

    def _registry(self, s: Scope, r: str | None) -> list[str]:
        e, d = self.expr, s.fresh("I", "reg")
        uses = [f"note({{k: v for k, v in {d}.items() if v}})", f"for k in list({d}): {d}[k] += 1", f"{d} |= {e('D', s, 1)}",
                f"note(sorted({d}.items(), key=lambda kv: (kv[1], kv[0])))", f"note({d}.keys() & {e('D', s, 1)}.keys())",
                f"note({d}.pop({e('S', s, 1)}, -1))", f"note(max({d}, key={d}.get, default=None))", "shout(11)",
                f"note([*{d}.items()][::-1])", f"note({d}.setdefault({e('S', s, 1)}, {e('I', s, 1)}))",
                f"note(list(map({d}.get, {e('D', s, 1)})))", f"note({d}.move_to_end('a'))",
                f"note(dict(reversed({d}.items())))"]  # fmt: skip
        made = self.pick(f"{e('D', s, 1)}", f"dict({e('D', s, 1)})", f"collections.OrderedDict({e('D', s, 1)})",
                         f"collections.Counter({e('S', s, 1)})", f"{{s: len(s) for s in ('a', 'b', {e('S', s, 1)}) if s}}",
                         f"collections.defaultdict(int, {e('D', s, 1)})")  # fmt: skip
        return [f"{d} = {made}", *self.rng.sample(uses, 3)]

    def _sets(self, s: Scope, r: str | None) -> list[str]:
        e, v = self.expr, s.fresh("E", "st")
        uses = [f"{v} ^= {e('E', s, 1)}", f"{v}.update({e('L', s, 1)}, {e('E', s, 1)})", f"note({v}.isdisjoint({e('E', s, 1)}))",
                f"{v}.difference_update({e('L', s, 1)})", f"note({v}.pop() in {e('L', s, 1)})", f"note({v} > {e('E', s, 1)})",
                f"note(len({{*{v}, *{e('L', s, 1)}}}))", f"{v}.symmetric_difference_update({e('L', s, 1)})", "shout(12)",
                f"note(sorted({v} - {e('E', s, 1)} | {{1}}))", f"{v}.remove({e('I', s, 1)})"]  # fmt: skip
        lines = [f"{v} = set({e('L', s, 1)})", *self.rng.sample(uses, 3), f"note(sorted({v}))"]
        s.add("E", v)
        return lines

    def _shapes(self, s: Scope, r: str | None) -> list[str]:
        e = self.expr
        t = e("T", s, 1)
        return [f"note({text})" for text in self.rng.sample((
            f"f'{{tuple({t}.shape)}} {{{t}.dtype}}'", f"f'{{{t}.shape[0]:>4}}|{{{t}.numel()!r:<5}}|{{{t}.ndim=}}'", f"str({t}.shape)",
            f"'%s x %s' % tuple({t}.shape)", f"'{{0[0]}}-{{0[1]}}'.format({t}.shape)", f"repr({t}.size())",
            f"'x'.join(map(str, {t}.shape))",
            f"[*{t}.shape, {t}.stride(0)]", f"{t}.shape == (2, 3) and {t}.shape + (1,)", f"f'{{{t}.sum():.1f}}'",
            f"list(enumerate({t}.shape, 1))",
        ), 2)]  # fmt: skip

    def _view_chain(self, s: Scope, r: str | None) -> list[str]:
        e, base, v, w = self.expr, s.fresh("T"), s.fresh("Z", "v"), s.fresh("Z", "w")
        lines = [f"{base} = {e('T', s, 1)}.clone()",
                 f"{v} = {base}{self.pick('[0]', '[:, 1]', '.view(-1)', '.t()', '[:, ::2]', '.flatten()', '.reshape(3, 2)', '[..., -1]')}",
                 f"{w} = {v}{self.pick('[1:]', '[0]', '.unsqueeze(0)', '[...]', '.detach()', '.view_as(' + v + ')')}"]  # fmt: skip
        writes = [f"{w} += {e('I', s, 1)}", f"{v}.mul_(2)", f"{base}.zero_()", f"{base}[0, 1] = {e('I', s, 1)}", f"{w}.copy_({w} * 2)",
                  f"{v}[0] -= 1", f"{w}.fill_({e('I', s, 1)})", "shout(13)", f"{base}.t_()", f"torch.add({base}, 1, out={base})",
                  f"note({w}._base is {base})", f"{base}.clamp_(max={e('I', s, 1)})", f"{v}.data = {v} + 1"]  # fmt: skip
        s.add("T", base)
        return [*lines, *self.rng.sample(writes, 3), f"note(({base}, {v}, {w}))"]

    def _kept(self, s: Scope, r: str | None) -> list[str]:
        """Exceptions that outlive their handlers, in loops that try again."""
        e, errors = self.expr, s.fresh("I", "errors")
        raising = self.pick(f"thrower({e('I', s, 1)} + attempt)", f"note({e('L', s, 1)}[attempt + 1])", "raise Oops(attempt)",
                            f"note({e('D', s, 1)}['zz'])", f"note(1 // (attempt - {e('I', s, 1)}))")  # fmt: skip
        keep = self.pick(f"{errors}.append(e)", f"{errors} = [*{errors}, e]", "last = e", f"kept.append(e); {errors}.append(e)",
                         f"{errors}.append(e.__traceback__)")  # fmt: skip
        uses = [f"note(len({errors}))", f"note([type(v).__name__ for v in {errors}])", f"{errors}.clear()", "shout(14)", f"del {errors}",
                f"note([v.args for v in {errors} if isinstance(v, Exception)])", f"raise {errors}[0]", f"kept.extend({errors})",
                f"{errors} = None"]  # fmt: skip
        return [f"{errors}, last = [], None", f"for attempt in range({self.rng.randint(1, 3)}):", "    held = guarded(3)", "    next(held)",
                "    try:", f"        {raising}", "    except (Oops, LookupError, ArithmeticError) as e:",
                *[f"        {part}" for part in keep.split("; ")],
                f"        {self.pick('continue', 'pass', 'note(attempt)', 'shout(e.args)')}",
                "    else:", "        break", *self.rng.sample(uses, 2)]  # fmt: skip
