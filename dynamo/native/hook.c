/* The frame evaluation hook (PEP 523): installed while a region is active or a re-entry waits for its frame, and
 * only then. Owns the count of reasons to be installed. */
#include "hook.h"
#include "binder.h"
#include "code_state.h"
#include "frame_fill.h"
#include "tail.h"

#include <pthread.h>

static _PyFrameEvalFunction previous_eval = _PyEval_EvalFrameDefault;
static Py_ssize_t n_acquired, n_regions;
static bool buried;             /* another hook lies over ours, and may call ours */

/* --- a fresh frame --------------------------------------------------------------------------- */
/* region.miss(code, func, slots), with the hook off, without tracing, and with the current error saved. */
static PyObject *call_frame_miss(PyThreadState *ts, PyObject *miss, PyCodeObject *code, PyObject *function,
                                 PyObject **slots, int n)
{
    PyObject *type, *value, *traceback, *outcome = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *tuple = slots_tuple(slots, n);
    if (tuple) {
        PyObject *args[4] = {NULL, (PyObject *)code, function, tuple};
        PyThreadState_EnterTracing(ts);
        outcome = target_call(miss, args + 1, 3);
        PyThreadState_LeaveTracing(ts);
        Py_DECREF(tuple);
    }
    if (outcome) PyErr_Restore(type, value, traceback);
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    return outcome;
}

/* The result of the code that replaces the frame. *plain: no code replaces it, and the frame runs unchanged. */
static __attribute__((noinline)) PyObject *run_replacement(PyThreadState *ts, Frame *frame, PyCodeObject *code, DispatcherObject *dispatcher,
                                 PyObject *miss, bool *plain)
{
    int n = code_argument_slots(code);
    PyObject *result = NULL, *function = frame_function(frame);
    SlotBuffer buffer;
    if (slot_buffer_init(&buffer, n + 1) < 0) return NULL;
    for (int i = 0; i < n; i++) buffer.slots[i] = frame_slot_borrow(frame, i);
    buffer.slots[n] = function;
    int mode = thread_state.mode;
    thread_state.mode = MODE_OFF;
    EntryObject *entry = dispatcher ? entry_table_find(&dispatcher->table, buffer.slots, n + 1, buffer.capacity) : NULL;
    if (entry) {
        dispatcher->hits++;
        if (entry->target) result = tail_drive(entry_call(entry, buffer.slots, n, function));
        else *plain = true;
        Py_DECREF(entry);
    } else if (dispatcher && PyErr_Occurred()) {
        result = NULL;
    } else if (miss) {
        if (dispatcher) dispatcher->misses++;
        PyObject *outcome = call_frame_miss(ts, miss, code, function, buffer.slots, n);
        if (outcome) result = tail_drive(outcome_call(outcome, buffer.slots, n, function, plain));
    } else {
        *plain = true;
    }
    thread_state.mode = mode;
    slot_buffer_free(&buffer);
    return result;
}

#define GENERATOR_FLAGS (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)

/* Frames of functions only: class bodies, modules and eval have no arguments bound in slots. */
static inline bool is_candidate(PyThreadState *ts, Frame *frame, PyCodeObject *code)
{
    const int function_flags = CO_OPTIMIZED | CO_NEWLOCALS;
    return (code->co_flags & (GENERATOR_FLAGS | function_flags)) == function_flags && frame_is_fresh(frame, code) &&
           !thread_is_traced(ts);
}

/* --- the C stack ----------------------------------------------------------------------------- */
#define STACK_MARGIN (256 << 10)

/* The lowest address that frames of this thread may reach; 0 where the system does not report it. */
static uintptr_t stack_floor(void)
{
    static _Thread_local uintptr_t known = 1;
    if (likely(known != 1)) return known;
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0, guard = 0;
    known = 0;
    if (pthread_getattr_np(pthread_self(), &attributes)) return known;
    if (!pthread_attr_getstack(&attributes, &low, &size) && !pthread_attr_getguardsize(&attributes, &guard))
        known = (uintptr_t)low + guard + (size / 4 < STACK_MARGIN ? size / 4 : STACK_MARGIN);
    pthread_attr_destroy(&attributes);
    return known;
}

/* Run the frame unchanged. With the hook installed, each Python call takes C stack: at its end, the recursion is an error. */
static PyObject *eval_as_it_is(PyThreadState *ts, Frame *frame, int throwflag)
{
    char here;
    if (unlikely((uintptr_t)&here < stack_floor()) && !throwflag && frame_is_fresh(frame, frame_code(frame))) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
        return frame_dispose(ts, frame, NULL);
    }
    frame_uncount(ts);
    PyObject *result = previous_eval(ts, frame, throwflag);
    frame_recount(ts);
    return result;
}

static PyObject *hook_eval(PyThreadState *ts, Frame *frame, int throwflag)
{
    ThreadState *t = &thread_state;
    if (unlikely(t->pending != NULL) && !throwflag) {
        Pending *p = t->pending;
        if (frame_code(frame) == p->code && frame_function(frame) == p->function && frame_is_fresh(frame, p->code)) {
            t->pending = NULL;
            int throwing = frame_fill(p, ts, frame);
            return previous_eval(ts, frame, throwing);
        }
    }
    if (t->mode == MODE_OFF || throwflag || t->disabled || stance == STANCE_EAGER)
        return eval_as_it_is(ts, frame, throwflag);
    PyCodeObject *code = frame_code(frame);
    if (t->plain == code) {
        t->plain = NULL;
        return eval_as_it_is(ts, frame, throwflag);
    }
    CodeState *state = code_state(code, false);
    if ((state && state->skip) || !is_candidate(ts, frame, code)) return eval_as_it_is(ts, frame, throwflag);
    bool skipped, plain = false;
    RegionObject *region = t->region ? t->region : default_region;
    DispatcherObject *dispatcher = region_find(region, code, &skipped);
    bool capture = t->mode == MODE_ON && stance == STANCE_DEFAULT;
    PyObject *miss = capture ? region_miss(region) : NULL;
    if (skipped || (!dispatcher && !miss)) return eval_as_it_is(ts, frame, throwflag);
    Py_XINCREF(dispatcher);     /* checks and the miss callback run Python code, which may drop both from the region */
    Py_XINCREF(miss);
    PyObject *result = run_replacement(ts, frame, code, dispatcher, miss, &plain);
    Py_XDECREF(miss);
    Py_XDECREF(dispatcher);
    return plain ? eval_as_it_is(ts, frame, throwflag) : frame_dispose(ts, frame, result);
}

/* --- installation ---------------------------------------------------------------------------- */
static bool is_installed(void) { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == hook_eval; }

void hook_acquire(void)
{
    if (n_acquired++) return;
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (current == hook_eval) {
        buried = false;
        return;
    }
    /* A hook over ours chains to ours: installing ours again would make a circle. */
    if (buried) return;
    previous_eval = current;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, hook_eval);
}

void hook_release(void)
{
    if (--n_acquired) return;
    buried = !is_installed();
    if (!buried) _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), previous_eval);
}

void region_enter(SavedRegion *saved, RegionObject *region, int mode)
{
    ThreadState *t = &thread_state;
    saved->mode = t->mode;
    saved->region = t->region;
    t->region = (RegionObject *)Py_XNewRef((PyObject *)region);
    t->mode = mode;
    n_regions++;
    hook_acquire();
}

void region_leave(SavedRegion *saved)
{
    ThreadState *t = &thread_state;
    RegionObject *region = t->region;
    t->mode = saved->mode;
    t->region = saved->region;
    n_regions--;
    hook_release();
    Py_XDECREF((PyObject *)region);
}

static PyObject *call_with_region(RegionObject *region, PyCodeObject *plain, PyObject *fn, PyObject *const *args,
                                  size_t nargsf, PyObject *kwnames)
{
    ThreadState *t = &thread_state;
    PyCodeObject *saved_plain = t->plain;
    SavedRegion saved;
    region_enter(&saved, region, MODE_ON);
    t->plain = plain;
    PyObject *result = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    t->plain = saved_plain;
    region_leave(&saved);
    return result;
}

PyObject *call_original(RegionObject *region, PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (region) return call_with_region(region, (PyCodeObject *)PyFunction_GET_CODE(fn), fn, args, nargsf, kwnames);
    int mode = thread_state.mode;
    thread_state.mode = MODE_OFF;
    PyObject *result = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    thread_state.mode = mode;
    return result;
}

/* --- Python functions ------------------------------------------------------------------------ */
static int region_argument(PyObject *value, RegionObject **region)
{
    if (value != Py_None && !Py_IS_TYPE(value, &RegionType)) {
        PyErr_Format(PyExc_TypeError, "expected a Region or None (the default region), given a %s", Py_TYPE(value)->tp_name);
        return -1;
    }
    *region = value == Py_None ? NULL : (RegionObject *)value;
    return 0;
}

static PyObject *py_enter_region(PyObject *module, PyObject *args)
{
    PyObject *value = Py_None;
    RegionObject *region;
    int mode = MODE_ON;
    (void)module;
    if (!PyArg_ParseTuple(args, "|Oi:enter_region", &value, &mode) || region_argument(value, &region) < 0) return NULL;
    if (mode < MODE_OFF || mode > MODE_RUN_ONLY)
        return PyErr_Format(PyExc_ValueError, "enter_region: mode is %d; expected OFF, ON or RUN_ONLY", mode);
    ThreadState *t = &thread_state;
    PyObject *token = Py_BuildValue("iO", t->mode, t->region ? (PyObject *)t->region : Py_None);
    if (!token) return NULL;
    SavedRegion saved;
    region_enter(&saved, region, mode);
    Py_XDECREF((PyObject *)saved.region);   /* the token holds it */
    return token;
}

static PyObject *py_leave_region(PyObject *module, PyObject *token)
{
    (void)module;
    int mode;
    PyObject *value;
    SavedRegion saved;
    if (!PyTuple_Check(token) || !PyArg_ParseTuple(token, "iO:leave_region", &mode, &value)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "leave_region: expected the token of enter_region");
        return NULL;
    }
    if (region_argument(value, &saved.region) < 0) return NULL;
    if (!n_regions) return PyErr_Format(PyExc_RuntimeError, "leave_region: no region is active");
    saved.mode = mode;
    Py_XINCREF((PyObject *)saved.region);
    region_leave(&saved);
    Py_RETURN_NONE;
}

static PyObject *py_call_in_region(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    RegionObject *region;
    (void)module;
    if (nargs < 2) return PyErr_Format(PyExc_TypeError, "call_in_region: expected a region and a callable, then its arguments");
    if (region_argument(args[0], &region) < 0) return NULL;
    return call_with_region(region, NULL, args[1], args + 2, (size_t)(nargs - 2), kwnames);
}

static PyObject *py_call_plain(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    RegionObject *region;
    (void)module;
    if (nargs < 2 || !PyFunction_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "call_plain: expected a region and a Python function, then its arguments");
    if (region_argument(args[0], &region) < 0) return NULL;
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(args[1]);
    return call_with_region(region, code, args[1], args + 2, (size_t)(nargs - 2), kwnames);
}

static PyObject *py_call_outside(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)module;
    if (nargs < 1) return PyErr_Format(PyExc_TypeError, "call_outside: expected a callable, then its arguments");
    return call_original(NULL, args[0], args + 1, (size_t)(nargs - 1), kwnames);
}

static PyObject *py_hook_installed(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(is_installed());
}

static PyObject *py_active_regions(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromSsize_t(n_regions);
}

#define CALL_METHOD(name, doc) \
    {#name, (PyCFunction)(void (*)(void))py_##name, METH_FASTCALL | METH_KEYWORDS, doc}
PyMethodDef hook_methods[] = {
    {"enter_region", py_enter_region, METH_VARARGS, "enter_region(region=None, mode=ON) -> token"},
    {"leave_region", py_leave_region, METH_O, "Restore what enter_region replaced."},
    CALL_METHOD(call_in_region, "call_in_region(region, fn, /, *args, **kwargs): with the hook on."),
    CALL_METHOD(call_plain, "call_plain(region, fn, /, *args, **kwargs): the hook on for callees of fn only."),
    CALL_METHOD(call_outside, "call_outside(fn, /, *args, **kwargs): with this thread's mode OFF."),
    {"hook_installed", py_hook_installed, METH_NOARGS, "Whether this module's hook evaluates frames now."},
    {"active_regions", py_active_regions, METH_NOARGS, "Regions entered and not left, in all threads."},
    {NULL, NULL, 0, NULL},
};
