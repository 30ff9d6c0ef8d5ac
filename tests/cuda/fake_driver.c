/* A libcuda that runs nothing: it counts calls, and keeps the parameters of the last launches. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KEPT = 64, VALUES = 3 };

typedef struct {
    void *function, *stream;
    unsigned grid, threads, shared_bytes;
    int64_t values[VALUES]; /* the first arguments, as 64 bits each; every kernel has two hidden ones */
} Launch;

static Launch launches[KEPT];
static int n_launches, n_early, n_copies, n_uploads, n_words, n_graph_launches, n_recordings, is_capturing, is_captured, next_status;
static void *context, *last_context; /* of this thread; of the last call that needs one */

int fake_launches(void) { return n_launches; }
int fake_early_launches(void) { return n_early; }
int fake_copies(void) { return n_copies; }
int fake_uploads(void) { return n_uploads; }
int fake_graph_launches(void) { return n_graph_launches; }
int fake_recordings(void) { return n_recordings; }
int fake_words(void) { return n_words; }
void fake_capture(int is_on) { is_captured = is_on; } /* of the caller's stream */
void fake_fail_next(int status) { next_status = status; }
const Launch *fake_launch(int number) { return &launches[number % KEPT]; }

int cuInit(unsigned flags) { (void)flags; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int device) { *c = (void *)(uintptr_t)(100 + device); return 0; }
int cuCtxGetCurrent(void **c) { *c = context; return 0; }
int cuCtxSetCurrent(void *c) { context = c; return 0; }
static int64_t *unfinished; /* where a kernel that still runs notes a failure */
void fake_run_until_wait(int64_t *check) { unfinished = check; }
int cuCtxSynchronize(void)
{
    if (unfinished) {
        unfinished[0] = 1;
        unfinished[1] = 12;
        unfinished = NULL;
    }
    return 0;
}
void fake_forget_context(void) { last_context = NULL; }
int fake_last_context(void) { return (int)(uintptr_t)last_context; }
int cuModuleLoadData(void **module, const void *image)
{
    last_context = context;
    *module = (void *)image;
    return memcmp(image, "bad", 3) == 0 ? 200 : 0;
}
int cuModuleUnload(void *module) { (void)module; last_context = context; return context ? 0 : 201; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    last_context = context;
    *function = (char *)module + 1;
    return name[0] == '?' ? 500 : 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) { (void)function; return attribute == 8 && value > (227 << 10); }
int cuLaunchKernel(void *function, unsigned grid, unsigned gy, unsigned gz, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared_bytes, void *stream, void **arguments, void **extra)
{
    (void)gy, (void)gz, (void)ty, (void)tz, (void)extra;
    if (next_status) {
        int status = next_status;
        next_status = 0;
        return status;
    }
    Launch *l = &launches[n_launches++ % KEPT];
    l->function = function;
    l->stream = stream;
    l->grid = grid;
    l->threads = threads;
    l->shared_bytes = shared_bytes;
    for (int i = 0; i < VALUES; i++)
        l->values[i] = *(int64_t *)arguments[i];
    return 0;
}
/* CUlaunchConfig of cuda.h */
typedef struct {
    unsigned sizes[7];
    void *stream;
    struct { int id; char padding[4]; union { char whole[64]; int is_allowed; } value; } *attributes;
    unsigned n_attributes;
} Config;
int cuLaunchKernelEx(const Config *c, void *function, void **arguments, void **extra)
{
    int is_early = c->n_attributes == 1 && c->attributes[0].id == 6 && c->attributes[0].value.is_allowed == 1;
    n_early += is_early;
    return is_early ? cuLaunchKernel(function, c->sizes[0], c->sizes[1], c->sizes[2], c->sizes[3], c->sizes[4], c->sizes[5], c->sizes[6],
                                     c->stream, arguments, extra) : 1;
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t nbytes, void *stream)
{
    (void)stream;
    n_copies++;
    if (!is_capturing)
        memmove((void *)(uintptr_t)target, (void *)(uintptr_t)source, nbytes);
    return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t nbytes, void *stream)
{
    (void)stream;
    if (is_capturing || is_captured)
        return 900; /* pageable memory cannot be part of a recording */
    n_uploads++;
    memcpy((void *)(uintptr_t)target, source, nbytes);
    return 0;
}
int cuMemsetD32Async(uint64_t target, unsigned value, size_t count, void *stream)
{
    (void)stream;
    n_words += (int)count;
    for (size_t i = 0; i < count; i++)
        memcpy((char *)(uintptr_t)target + 4 * i, &value, 4);
    return 0;
}
int cuStreamIsCapturing(void *stream, int *status) { *status = stream == (void *)77 ? is_capturing : is_captured; return 0; }
int cuStreamBeginCapture_v2(void *stream, int mode) { (void)stream, (void)mode; is_capturing = 1; return 0; }
int cuStreamEndCapture(void *stream, void **graph) { (void)stream; is_capturing = 0; *graph = (void *)1; return 0; }
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    *executable = (void *)(uintptr_t)++n_recordings;
    return 0;
}
int cuGraphLaunch(void *executable, void *stream) { (void)executable, (void)stream; n_graph_launches++; return 0; }
int cuGraphExecDestroy(void *executable) { (void)executable; return 0; }
int cuGraphDestroy(void *graph) { (void)graph; return 0; }
int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = (void *)77; return 0; }
int cuStreamDestroy_v2(void *stream) { (void)stream; return 0; }
int cuGetErrorName(int status, const char **name) { *name = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_TEST"; return 0; }
int cuGetErrorString(int status, const char **text) { (void)status; *text = "the fake driver was told to fail"; return 0; }
