/* Interpreter frames, the same on CPython 3.11 to 3.14: the only file of this extension with
 * version conditions on frames and code.
 *
 * Owns: reading and rewriting a frame that the eval hook was handed and has not started. Does
 * not know regions, guards or entries.
 *
 * 3.11: the caller of the eval function clears the frame; `prev_instr` is one before the next
 *       instruction. 3.12: the eval function clears it. 3.13: `instr_ptr` is the next instruction.
 *       3.14: slots are `_PyStackRef`, which may be tagged ints. */
#ifndef FRAMEJIT_FRAME_COMPAT_H
#define FRAMEJIT_FRAME_COMPAT_H

#include "state.h"

#define Py_BUILD_CORE
#undef _PyGC_FINALIZED              /* defined by both public and internal headers on 3.11 */
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#include <internal/pycore_interpframe.h>
#include <internal/pycore_stackref.h>
#endif
#include <internal/pycore_frame.h>
#include <internal/pycore_code.h>
#undef Py_BUILD_CORE
#include <opcode.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "framejit supports CPython 3.11 to 3.14"
#endif

typedef _PyInterpreterFrame Frame;

/* The frame that the thread is in. */
#if PY_VERSION_HEX >= 0x030D0000
static inline Frame *thread_frame(PyThreadState *ts) { return ts->current_frame; }
#define thread_set_frame(ts, f) ((ts)->current_frame = (f))
#else
static inline Frame *thread_frame(PyThreadState *ts) { return ts->cframe->current_frame; }
#define thread_set_frame(ts, f) ((ts)->cframe->current_frame = (f))
#endif

/* The frame object of the Python frame that called, if it has one: borrowed. */
static inline PyObject *calling_frame(void)
{
    Frame *frame = thread_frame(PyThreadState_Get());
    return frame ? (PyObject *)frame->frame_obj : NULL;
}

/* --- writes to dicts ------------------------------------------------------------------------- */
/* From 3.12 a dict can be watched; before, each write to any dict gives that dict a new version tag. From 3.13 the __dict__ of an
 * instance may share its values with the instance, and a write through the instance reports to no watcher. */
#define HAS_DICT_WATCHERS (PY_VERSION_HEX >= 0x030C0000)
#define HAS_SHARED_DICT_VALUES (PY_VERSION_HEX >= 0x030D0000)

/* --- code extras ----------------------------------------------------------------------------- */
#if PY_VERSION_HEX >= 0x030C0000
#define code_extra_request PyUnstable_Eval_RequestCodeExtraIndex
#define code_extra_get PyUnstable_Code_GetExtra
#define code_extra_set PyUnstable_Code_SetExtra
#else
#define code_extra_request _PyEval_RequestCodeExtraIndex
#define code_extra_get _PyCode_GetExtra
#define code_extra_set _PyCode_SetExtra
#endif

/* --- slots ----------------------------------------------------------------------------------- */
#if PY_VERSION_HEX >= 0x030E0000
/* A tagged int (the instruction offset saved by an exception handler) has no object: a snapshot shows it
 * as a complex number with this imaginary part, and a re-entry turns it back. */
#define TAGGED_INT_MARK 14.0e300
static inline PyObject *frame_slot(Frame *f, int i)   /* new reference or NULL */
{
    _PyStackRef s = f->localsplus[i];
    if (PyStackRef_IsNull(s)) return NULL;
    if (PyStackRef_IsTaggedInt(s))
        return PyComplex_FromDoubles((double)PyStackRef_UntagInt(s), TAGGED_INT_MARK);
    return PyStackRef_AsPyObjectNew(s);
}
static inline PyObject *frame_slot_borrow(Frame *f, int i)
{
    _PyStackRef s = f->localsplus[i];
    return PyStackRef_IsNull(s) ? NULL : PyStackRef_AsPyObjectBorrow(s);
}
static inline void frame_slot_init(Frame *f, int i, PyObject *o)  /* the slot holds nothing yet */
{
    if (!o) f->localsplus[i] = PyStackRef_NULL;
    else if (PyComplex_CheckExact(o) && PyComplex_ImagAsDouble(o) == TAGGED_INT_MARK)
        f->localsplus[i] = PyStackRef_TagInt((intptr_t)PyComplex_RealAsDouble(o));
    else f->localsplus[i] = PyStackRef_FromPyObjectNew(o);
}
static inline void frame_slot_drop(Frame *f, int i)
{
    _PyStackRef old = f->localsplus[i];
    f->localsplus[i] = PyStackRef_NULL;
    PyStackRef_XCLOSE(old);
}
static inline PyObject *frame_function(Frame *f) { return PyStackRef_AsPyObjectBorrow(f->f_funcobj); }
#else
static inline PyObject *frame_slot(Frame *f, int i) { return Py_XNewRef(f->localsplus[i]); }
static inline PyObject *frame_slot_borrow(Frame *f, int i) { return f->localsplus[i]; }
static inline void frame_slot_init(Frame *f, int i, PyObject *o) { f->localsplus[i] = Py_XNewRef(o); }
static inline void frame_slot_drop(Frame *f, int i)
{
    PyObject *old = f->localsplus[i];
    f->localsplus[i] = NULL;
    Py_XDECREF(old);
}
#if PY_VERSION_HEX >= 0x030C0000
static inline PyObject *frame_function(Frame *f) { return f->f_funcobj; }
#else
static inline PyObject *frame_function(Frame *f) { return (PyObject *)f->f_func; }
#endif
#endif

static inline void frame_slot_set(Frame *f, int i, PyObject *o)
{
    frame_slot_drop(f, i);
    frame_slot_init(f, i, o);
}

/* --- code and instruction pointer ------------------------------------------------------------ */
#if PY_VERSION_HEX >= 0x030E0000
static inline PyCodeObject *frame_code(Frame *f) { return _PyFrame_GetCode(f); }
static inline void frame_set_code(Frame *f, PyCodeObject *code)
{
    _PyStackRef old = f->f_executable;
    f->f_executable = PyStackRef_FromPyObjectNew((PyObject *)code);
    PyStackRef_CLOSE(old);
}
#define frame_set_stack_size(f, n) ((f)->stackpointer = (f)->localsplus + (n))
#elif PY_VERSION_HEX >= 0x030D0000
static inline PyCodeObject *frame_code(Frame *f) { return (PyCodeObject *)f->f_executable; }
static inline void frame_set_code(Frame *f, PyCodeObject *code)
{
    PyObject *old = f->f_executable;
    f->f_executable = Py_NewRef((PyObject *)code);
    Py_DECREF(old);
}
#define frame_set_stack_size(f, n) ((f)->stacktop = (n))
#else
static inline PyCodeObject *frame_code(Frame *f) { return f->f_code; }
static inline void frame_set_code(Frame *f, PyCodeObject *code)
{
    PyCodeObject *old = f->f_code;
    f->f_code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    Py_DECREF(old);
}
#define frame_set_stack_size(f, n) ((f)->stacktop = (n))
#endif

/* Make code unit `unit` the next instruction. */
#if PY_VERSION_HEX >= 0x030D0000
static inline bool frame_is_fresh(Frame *f, PyCodeObject *code)
{
    return f->owner == FRAME_OWNED_BY_THREAD && f->instr_ptr == _PyCode_CODE(code);
}
static inline void frame_set_next(Frame *f, PyCodeObject *code, int unit)
{
    f->instr_ptr = _PyCode_CODE(code) + unit;
}
#else
static inline bool frame_is_fresh(Frame *f, PyCodeObject *code)
{
    if (f->owner != FRAME_OWNED_BY_THREAD) return false;
    return f->prev_instr == _PyCode_CODE(code) - 1;
}
static inline void frame_set_next(Frame *f, PyCodeObject *code, int unit)
{
    f->prev_instr = _PyCode_CODE(code) + unit - 1;
}
#endif

/* 3.12 and 3.13 count nested evaluations separately from Python's recursion limit, to protect the C stack, and allow
 * fewer (Include/cpython/pystate.h). A frame that the hook evaluates counts as nested; without the hook it would not.
 * The hook checks the stack itself, so it returns the units of the frame (PY_EVAL_C_STACK_UNITS in Python/ceval.c). */
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
#define EVAL_STACK_UNITS 2
#define frame_uncount(ts) ((ts)->c_recursion_remaining += EVAL_STACK_UNITS)
#define frame_recount(ts) ((ts)->c_recursion_remaining -= EVAL_STACK_UNITS)
#else
#define frame_uncount(ts) ((void)(ts))
#define frame_recount(ts) ((void)(ts))
#endif

/* Which row of the exception table covers a code unit, or -1 (CPython's Objects/exception_handling_notes.txt). */
static inline int exception_row(PyCodeObject *code, int unit)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(code->co_exceptiontable);
    const unsigned char *end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
    for (int row = 0; at < end; row++) {
        int fields[4];          /* start, size, target, depth and whether the offset is pushed */
        for (int k = 0; k < 4; k++) {
            int value = *at & 63;
            while (*at++ & 64) value = value << 6 | (*at & 63);
            fields[k] = value;
        }
        if (unit >= fields[0] && unit < fields[0] + fields[1]) return row;
    }
    return -1;
}

/* Start a frame with an exception to throw. Up to 3.12, the interpreter looks up the handler and the traceback's
 * line for the unit before the next instruction. From 3.13, the line is that next instruction's line, and the handler
 * still belongs to the unit before. So `unit` is the next instruction if both units have the same handler; an
 * instruction that can raise is rarely the first one of a handler's range. */
static inline void frame_set_throwing(Frame *f, PyCodeObject *code, int unit)
{
#if PY_VERSION_HEX >= 0x030D0000
    if (exception_row(code, unit - 1) == exception_row(code, unit)) {
        frame_set_next(f, code, unit);
        return;
    }
#endif
    frame_set_next(f, code, unit + 1);
}

/* Whether the number of values on the stack of a suspended frame is known from the frame itself. */
#if PY_VERSION_HEX >= 0x030C0000
static inline int frame_stack_size(Frame *f, PyCodeObject *code, int depth)
{
    (void)f;
    return code->co_nlocalsplus + depth;
}
#else
static inline int frame_stack_size(Frame *f, PyCodeObject *code, int depth)
{
    return f->stacktop >= code->co_nlocalsplus ? f->stacktop : code->co_nlocalsplus + depth;
}
#endif

static inline Frame *frame_of_object(PyFrameObject *object) { return object->f_frame; }

/* Drops the copy of its variables that a finished frame keeps since a trace function was called for it: emptying a frame leaves
 * the copy unchanged. From 3.13 on there is no copy. */
#if PY_VERSION_HEX >= 0x030D0000
static inline void frame_drop_copy(PyFrameObject *object) { (void)object; }
#else
static inline void frame_drop_copy(PyFrameObject *object) { Py_CLEAR(object->f_frame->f_locals); }
#endif

/* The frame object of a frame that is about to run from its middle: a new reference, or NULL, with or without an error. */
static inline PyFrameObject *frame_object(PyThreadState *ts, Frame *f)
{
    Frame *before = thread_frame(ts);
    f->previous = before;       /* set again when it runs */
    thread_set_frame(ts, f);
    PyFrameObject *object = PyThreadState_GetFrame(ts);     /* the only public way to make one */
    thread_set_frame(ts, before);
    if (object && object->f_frame != f) Py_CLEAR(object);
    return object;
}

/* --- disposal -------------------------------------------------------------------------------- */
/* An eval function that returns without evaluating the frame must leave the frame in the state after an evaluation.
 * 3.11: nothing to do, the caller clears the frame. From 3.12, the callee clears it: the frame evaluates replacement
 * code that only returns None, so that its slots, function and code are released in the ordinary way. The first
 * instruction (RESUME, which may run signal handlers) is skipped. Consumes `result`; returns it, or NULL with the error
 * that was set before. */
#if PY_VERSION_HEX >= 0x030C0000
extern PyCodeObject *return_none_code;      /* made by frame_compat_init(); frame_fill.c defines it */
static inline int frame_compat_init(void)
{
    return_none_code = (PyCodeObject *)Py_CompileString("None", "<framejit>", Py_eval_input);
    return return_none_code ? 0 : -1;
}
static inline PyObject *frame_dispose(PyThreadState *ts, Frame *f, PyObject *result)
{
    PyCodeObject *code = frame_code(f), *stub = return_none_code;
    PyObject *error = result ? NULL : PyErr_GetRaisedException();
    for (int i = 0; i < code->co_nlocalsplus; i++) frame_slot_drop(f, i);
    frame_set_code(f, stub);
    frame_set_stack_size(f, stub->co_nlocalsplus);
    frame_set_next(f, stub, 1);
    PyObject *none = _PyEval_EvalFrameDefault(ts, f, 0);
    if (error) {
        Py_XDECREF(none);
        PyErr_SetRaisedException(error);
        return NULL;
    }
    if (!none) Py_CLEAR(result);
    Py_XDECREF(none);
    return result;
}
#else
static inline int frame_compat_init(void) { return 0; }
static inline PyObject *frame_dispose(PyThreadState *ts, Frame *f, PyObject *result)
{
    (void)ts;
    (void)f;
    return result;
}
#endif

/* --- instructions that a re-entry must not separate from the ones after them ------------------ */
/* Whether the instruction after `opcode` depends on `opcode` by more than locals and stack. `so_far`: whether
 * `opcode` depends on the instruction before it. The effect of KW_NAMES (3.11, 3.12) lasts until CALL, across the
 * PRECALL of 3.11. */
static inline bool opcode_binds_next(int opcode, bool so_far)
{
#ifdef KW_NAMES
    if (opcode == KW_NAMES) return true;
#endif
#ifdef PRECALL
    if (opcode == PRECALL) return so_far;
#endif
    (void)so_far;
    return opcode == EXTENDED_ARG;
}
#endif
