"""Which of CPython's test modules run, and which of their tests are excluded, with the reason."""

from __future__ import annotations

from typing import Final

# The modules that the test suite runs: a few seconds together.
QUICK: Final = (
    "test_with", "test_scope", "test_keywordonlyarg", "test_property", "test_super", "test_contextlib", "test_raise",
    "test_class", "test_named_expressions",
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
    "test_tuple", "test_weakset", "test_asyncgen", "test_coroutines", "test_types", "test_typing", "test_exception_hierarchy",
    "test_structseq", "test_textwrap",
    "test_long", "test_pow", "test_richcmp", "test_strftime", "test_string", "test_baseexception", "test_dynamicclassattribute",
    "test_weakref", "test_genericalias", "test_genericclass", "test_type_annotations", "test_dictviews", "test_contains",
    "test_iterlen", "test_unary", "test_numeric_tower", "test_abstract_numbers", "test_int_literal", "test_string_literals",
    "test_print", "test_pprint", "test_random", "test_fractions", "test_userstring", "test_struct", "test_re", "test_array",
    "test_memoryview", "test_traceback", "test_statistics",
)  # fmt: skip

# "module.Class.test", "module.Class" or "module" -> why it does not run captured.
_GARBAGE: Final = "tests when an object dies: values that a graph break passes on live until the frame that passes them on returns"
_FRAMES: Final = "reads frame objects; an inlined call has no frame object, and its traceback entry shows where the exception passed"
_BUILTINS: Final = "replaces a builtin or a module that the compiler itself runs on"
_SIZES: Final = "tests sizes of objects, or counts of references or of calls of __hash__: rebuilt containers may differ in these"
_DEEP: Final = "recurses tens of thousands of times: under the hook each call takes C stack, which is too small"
_DEPTH: Final = "counts calls until a RecursionError: inlined calls do not count towards the interpreter's limit"
_CALLS_IN_C: Final = "replaces the call function of one object in C, and not of its class"
_HELD: Final = "tests when a class, function, module or key of the test dies: compiled code holds the objects that its guards compare"
_COUNTED: Final = "counts references to constants, which compiled code holds as well"
_TIME: Final = "measures time, or takes minutes captured: thousands of iterations of plain Python"
_LINES: Final = "tests the contents of linecache: the capture reads the user's lines through it"
EXCLUDED: Final[dict[str, str]] = {
    **dict.fromkeys((
        "test_contextlib.ContextManagerTestCase.test_nokeepref",
        "test_dict.DictTest.test_container_iterator",
    ), _GARBAGE),
    **dict.fromkeys((
        "test_exceptions.ExceptionTests.testSettingException",
        "test_exceptions.PEP626Tests.test_lineno_after_other_except", "test_exceptions.PEP626Tests.test_lineno_in_try",
        "test_exceptions.PEP626Tests.test_missing_lineno_shows_as_none",
    ), _FRAMES),
    **dict.fromkeys((
        "test_builtin.TestBreakpoint", "test_iter.TestCase.test_reduce_mutating_builtins_iter",
        "test_functools.TestLRUC.test_lru_reentrancy_with_len", "test_functools.TestLRUPy.test_lru_reentrancy_with_len",
        "test_ordered_dict",
    ), _BUILTINS),
    **dict.fromkeys((
        "test_dict.DictTest.test_splittable_popitem", "test_descr.SharedKeyTests.test_subclasses",
        "test_set.TestSet.test_do_not_rehash_dict_keys", "test_set.TestSetSubclass.test_do_not_rehash_dict_keys",
        "test_set.TestFrozenSet.test_do_not_rehash_dict_keys", "test_set.TestFrozenSetSubclass.test_do_not_rehash_dict_keys",
        "test_enumerate.TestReversed.test_bug1229429", "test_coroutines.CoroutineTest.test_for_3",
        "test_coroutines.CoroutineTest.test_for_4",
    ), _SIZES),
    **dict.fromkeys((
        "test_call.TestRecursion.test_super_deep", "test_functools.TestLRUPy.test_lru_recursion",
    ), _DEEP),
    **dict.fromkeys((
        "test_call.TestPEP590.test_setvectorcall", "test_call.TestPEP590.test_vectorcall_override",
        "test_call.TestPEP590.test_setvectorcall_load_attr_specialization_deopt",
        "test_call.TestPEP590.test_setvectorcall_load_attr_specialization_skip",
    ), _CALLS_IN_C),
    **dict.fromkeys((
        "test_descr.ClassPropertiesAndMethods.test_remove_subclass",
        "test_functools.TestLRUC.test_lru_cache_weakrefable",
        "test_functools.TestLRUPy.test_lru_cache_weakrefable",
        "test_ordered_dict.CPythonOrderedDictTests.test_reference_loop",
        "test_ordered_dict.CPythonOrderedDictSubclassTests.test_reference_loop",
        "test_weakref.WeakMethodTestCase.test_callback_when_method_dead", "test_weakref.WeakMethodTestCase.test_method_dead",
        "test_weakref.ReferencesTestCase.test_callback_in_cycle_resurrection",
        "test_weakref.MappingTestCase.test_weak_keyed_union_operators",
        "test_struct.StructTest.test__struct_reference_cycle_cleaned_up", "test_weakref.ReferencesTestCase.test_cfunction",
    ), _HELD),
    **dict.fromkeys((
        "test_array.ByteTest.test_bug_782369", "test_array.DoubleTest.test_bug_782369",
        "test_array.FloatTest.test_bug_782369", "test_array.IntTest.test_bug_782369",
        "test_array.LongLongTest.test_bug_782369", "test_array.LongTest.test_bug_782369",
        "test_array.ShortTest.test_bug_782369", "test_array.UnicodeTest.test_bug_782369",
        "test_array.UnsignedByteTest.test_bug_782369", "test_array.UnsignedIntTest.test_bug_782369",
        "test_array.UnsignedLongLongTest.test_bug_782369", "test_array.UnsignedLongTest.test_bug_782369",
        "test_array.UnsignedShortTest.test_bug_782369", "test_memoryview.BytesMemorySliceSliceTest.test_getbuffer",
        "test_memoryview.BytesMemorySliceSliceTest.test_getitem",
        "test_memoryview.BytesMemorySliceSliceTest.test_setitem_readonly",
        "test_memoryview.BytesMemorySliceTest.test_getbuffer", "test_memoryview.BytesMemorySliceTest.test_getitem",
        "test_memoryview.BytesMemorySliceTest.test_setitem_readonly", "test_memoryview.BytesMemoryviewTest.test_getbuffer",
        "test_memoryview.BytesMemoryviewTest.test_getitem", "test_memoryview.BytesMemoryviewTest.test_setitem_readonly",
    ), _COUNTED),
    **dict.fromkeys((
        "test_traceback.TracebackFormatTests.test_recursive_traceback_cpython_internal",
        "test_traceback.TracebackFormatTests.test_recursive_traceback_python",
        "test_traceback.TestFallbackTracebackFormat.test_recursive_traceback",
        "test_traceback.TestTracebackFormat.test_recursive_traceback",
    ), _DEPTH),
    **dict.fromkeys((
        "test_traceback.TestStack.test_extract_stackup_deferred_lookup_lines",
        "test_traceback.TestTracebackException.test_lookup_lines",
    ), _LINES),
    **dict.fromkeys((
        "test_re.ReTests.test_search_anchor_at_beginning", "test_statistics.TestNormalDistC.test_overlap",
        "test_statistics.TestNormalDistPython.test_overlap", "test_statistics.TestKDE.test_kde_random",
    ), _TIME),
}  # fmt: skip
