"""Random groups of statements that belong together: leaves and their gradients, views and writes through them, classes,
generators, managers and recursive functions made on the spot."""

from __future__ import annotations

from tests.dynamo.fuzz.sentences import Sentences, indented
from tests.dynamo.fuzz.words import Scope


class Paragraphs(Sentences):
    """Adds groups of statements to the choices of `statement`."""

    def statement(self, scope: Scope, returns: str | None) -> list[str]:
        if self.budget > 1 and self.chance(0.16):
            chosen = self.rng.choice((self._leaf, self._leaf, self._view, self._view, self._grad_mode, self._class,
                                      self._generator, self._managers, self._recursion, self._signature))  # fmt: skip
            return chosen(scope, returns)
        return super().statement(scope, returns)

    # -- tensors -----------------------------------------------------------------------------------------------
    def _leaf(self, s: Scope, r: str | None) -> list[str]:
        e, w, g = self.expr, s.fresh("T"), s.fresh("T")
        lines = [f"{w} = {e('T', s)}.detach().clone().requires_grad_()"]
        s.add("T", w)
        if self.chance(0.3):
            lines.append(self.pick(f"{w}.register_hook(lambda g: g * 2)", f"{w}.register_hook(lambda g: note(('hook', g.shape)))",
                                   f"{w}.requires_grad_({e('B', s, 1)})"))  # fmt: skip
        if self.chance(0.3):
            lines += self.block(s, 1, None)
        value = self.pick(f"({w} * {e('T', s, 1)})", f"Double.apply({w})", f"({w} * {w} + {e('I', s, 1)})", f"torch.relu({w})",
                          f"{w}[0].exp()", f"Double.apply({w} * 2).t()")  # fmt: skip
        if self.chance(0.5):
            lines += [f"{value}.sum().backward()", f"note({w}.grad)"]
            lines += [self.pick(f"{w}.grad = None", f"{w}.grad.zero_()", f"kept.append({w}.grad)", "pass")]
        else:
            lines.append(f"{g}, = torch.autograd.grad({value}.sum(), {self.pick(w, f'[{w}]', f'({w},)')})")
            s.add("T", g)
        return lines

    def _view(self, s: Scope, r: str | None) -> list[str]:
        e, t, v = self.expr, self.expr("T", s, 0), s.fresh("Z", "v")
        made, writes = self.rng.choice((
            (f"{v} = {t}[0]", (f"{v}.mul_(2)", f"{v} += {e('I', s, 1)}", f"{v}[1] = {e('I', s, 1)}")),
            (f"{v} = {t}.view(-1)", (f"{v}[::2] = {e('I', s, 1)}", f"{v}[{e('I', s, 1)}] += 1", f"{v}.sub_({v}.clone())")),
            (f"{v}, other = {t}.unbind(0)", (f"{v}.add_(other)", f"other.copy_({v})")),
            (f"{v} = {t}.T", (f"{v}[1].fill_({e('I', s, 1)})", f"{v} *= {e('I', s, 1)}")),
            (f"{v} = {t}[:, 1:]", (f"{v}.neg_()", f"{v}.masked_fill_({v} > 0, {e('I', s, 1)})")),
            (f"{v} = {t}.detach()", (f"{v}.add_(1)", f"{v}[{v} > 1] = 0")),
            (f"{v} = {t}.expand(2, 2, 3)[1]", (f"note({v} is {t})", f"{v} = {v} + 1")),
        ))  # fmt: skip
        lines = [made, self.rng.choice(writes)]
        if self.chance(0.3):
            lines.insert(1, self.pick("shout(3)", f"note({t}.sum())", f"kept.append({v})"))
        return [*lines, f"note({t})"] if self.chance(0.5) else lines

    def _grad_mode(self, s: Scope, r: str | None) -> list[str]:
        if self.chance(0.2):
            return [f"torch.set_grad_enabled({self.expr('B', s, 1)})"]
        mode = self.pick("torch.no_grad()", "torch.enable_grad()", lambda: f"torch.set_grad_enabled({self.expr('B', s, 1)})")
        return [f"with {mode}:", *self.inside(s, r), "note(torch.is_grad_enabled())"]

    # -- things made on the spot -------------------------------------------------------------------------------
    def _class(self, s: Scope, r: str | None) -> list[str]:
        e, name = self.expr, s.fresh("O", "C")
        base = self.pick("Base", "Derived", "Slotted")
        body = [f"extra = {e('I', s, 1)}", *(["__slots__ = ('more',)"] if self.chance(0.2) else []),
                "def scale(self, x):", f"    return super().scale(x) + self.extra + {e('I', s, 0)}",
                *(["@property", "def twice(self):", "    return super().twice + len(__class__.__name__)"] if self.chance(0.4) else [])]
        made = s.fresh("O", "o")
        lines = [f"class {name}({base}):", *indented(body), f"{made} = {name}({e('I', s, 1)}, {e('T', s, 1)})",
                 self.pick(f"note({made}.twice)", f"note({made}.scale({e('T', s, 1)}))", f"{name}.extra += 1",
                           f"{made}.more = 1")]  # fmt: skip
        s.add("O", made)
        return lines

    def _generator(self, s: Scope, r: str | None) -> list[str]:
        e, name = self.expr, s.fresh("I", "g")
        step = self.pick(lambda: "got = yield i + (got or 0)", lambda: "got = yield x", lambda: "yield from guarded(i)",
                         lambda: f"yield {e('I', s, 1)}")  # fmt: skip
        body = ["got = 0", "try:", "    for i in range(n % 3):", f"        {step}", "        note(got)",
                *self.rng.choice((["except Oops as e:", "    yield e.args"], ["except Oops:", "    raise ValueError(got)"],
                                  ["except Oops:", "    return 7"], [])),
                "finally:", f"    {self.pick('note(name)', 'shout(4)', 'pass')}"]  # fmt: skip
        uses = [f"note(next({name}it, None))", f"note({name}it.send({e('I', s, 1)}))", f"note({name}it.throw(Oops({e('I', s, 1)})))",
                f"{name}it.close()", f"note(list({name}it))", f"for item in {name}it: note(item)", f"kept.append({name}it)",
                f"note([*{name}it][:2])", f"del {name}it", "shout(5)"]  # fmt: skip
        lines = [f"def {name}(n, x=1, *, name='end'):", *indented(body), f"{name}it = {name}({e('I', s, 1)})"]
        return [*lines, uses[0], *self.rng.sample(uses, self.rng.randint(1, 3))]

    def _managers(self, s: Scope, r: str | None) -> list[str]:
        e = self.expr
        if self.chance(0.5):
            enters = [self.pick(lambda: f"stack.enter_context(Manager({e('I', s, 1)}, swallow={e('B', s, 1)}))",
                                lambda: f"stack.callback(note, {e('I', s, 1)})", lambda: f"stack.enter_context(managed({e('I', s, 1)}))",
                                lambda: "stack.push(lambda *error: note(error[0]))") for _ in range(2)]  # fmt: skip
            return ["with contextlib.ExitStack() as stack:", *indented(enters), *self.inside(s, r)]
        name = s.fresh("I", "w")
        after = self.rng.choice((["except Oops:", "    note('swallowed')"], ["finally:", "    shout(6)"],
                                 ["except LookupError as e:", "    raise Oops(1) from e"]))  # fmt: skip
        return ["@contextlib.contextmanager", f"def {name}(n, *rest):", "    try:", f"        yield n + {e('I', s, 0)}", *indented(after),
                f"with {name}({e('I', s, 1)}, *{e('L', s, 1)}) as inner:", "    note(inner)", *self.inside(s, r)]  # fmt: skip

    def _recursion(self, s: Scope, r: str | None) -> list[str]:
        e, name = self.expr, s.fresh("T", "r")
        body = ["if k < 1:", f"    return {self.pick('x', 'broken(x)', 'x * 2')}", self.pick("note(k)", "shout(k)", "pass"),
                f"return {name}({self.pick('x + k', 'x', 'x.t().clone().t()')}, k - 1) + {e('I', s, 0)}"]  # fmt: skip
        made = s.fresh("T")
        lines = [f"def {name}(x, k):", *indented(body), f"{made} = {name}({e('T', s, 1)}, {self.rng.randint(0, 4)})"]
        s.add("T", made)
        return lines

    def _signature(self, s: Scope, r: str | None) -> list[str]:
        e, name = self.expr, s.fresh("I", "s")
        head = self.pick("a, /, b=2, *c, d=3, **k", "a=1, *, b, **k", "*c, **k", "a, b=[]", "a, b={}, *c")
        body = self.pick("note([*locals().items()][:2])", "note(1)", "note(2); shout(7)")
        call = self.pick(f"{e('I', s, 1)}, {e('I', s, 1)}, *{e('L', s, 1)}", f"{e('I', s, 1)}, b={e('I', s, 1)}", f"*{e('L', s, 1)}",
                         f"{e('I', s, 1)}, **{e('D', s, 1)}", f"*{e('L', s, 1)}, b=1, **{{'d': {e('T', s, 1)}}}")  # fmt: skip
        shown = [w.split("=")[0].strip("* ") for w in head.split(",") if w.strip() not in ("/", "*")]
        return [f"def {name}({head}):", *indented([body, *(f"{v} += [1]" for v in shown if f"{v}=[]" in head),
                f"return {', '.join(shown)}"]), f"note({name}({call}))"]  # fmt: skip
