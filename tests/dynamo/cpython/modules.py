"""Which of CPython's test modules are run, and which of their tests are not, with the reason."""

from __future__ import annotations

from typing import Final

# Together some seconds: what the test suite runs.
QUICK: Final = (
    "test_unpack_ex", "test_with", "test_scope", "test_keywordonlyarg", "test_extcall", "test_property", "test_super",
    "test_contextlib", "test_raise", "test_string_literals", "test_dictviews", "test_tuple", "test_named_expressions",
)  # fmt: skip

FULL: Final = (
    *QUICK, "test_generators", "test_exceptions", "test_dict", "test_list", "test_set", "test_descr", "test_dataclasses",
    "test_enum", "test_functools", "test_itertools", "test_patma", "test_fstring", "test_grammar", "test_iter",
    "test_builtin", "test_call", "test_class", "test_operator", "test_collections", "test_math", "test_cmath",
    "test_exception_group", "test_except_star", "test_exception_variations", "test_listcomps", "test_genexps",
    "test_setcomps", "test_dictcomps", "test_userdict", "test_userlist", "test_ordered_dict", "test_defaultdict",
    "test_deque", "test_enumerate", "test_range", "test_slice", "test_bool", "test_int", "test_float", "test_complex",
    "test_compare", "test_binop", "test_augassign", "test_opcodes", "test_positional_only_arg", "test_funcattrs",
    "test_decorators", "test_metaclass", "test_subclassinit", "test_typechecks", "test_isinstance", "test_abc",
    "test_heapq", "test_bisect", "test_copy", "test_contextlib_async", "test_generator_stop", "test_yield_from",
    "test_global", "test_unpack", "test_format", "test_reprlib", "test_sort", "test_context", "test_hash", "test_index",
    "test_long", "test_pow", "test_richcmp", "test_strftime", "test_string", "test_baseexception", "test_dynamicclassattribute",
)  # fmt: skip

# "module.Class.test" or "module.Class": why it is not run captured.
EXCLUDED: Final[dict[str, str]] = {}
