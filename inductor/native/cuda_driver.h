/* The functions of the CUDA driver that launches need. They are looked up in libcuda at the first use: no CUDA header is needed. */
#ifndef INDUCTOR_CUDA_DRIVER_H
#define INDUCTOR_CUDA_DRIVER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDA_MAX_DEVICES = 64 };
#define CUDA_UNCHANGED ((void *)-1) /* in place of a context: cuda_leave has nothing to do */

/* CUlaunchAttribute and CUlaunchConfig of cuda.h. */
typedef struct {
    int id;
    char padding[4];
    union {
        char whole[64];
        void *aligned;
        int is_allowed;
    } value;
} CudaLaunchAttribute;

typedef struct {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream;
    CudaLaunchAttribute *attributes;
    unsigned n_attributes;
} CudaLaunch;

/* A status of 0 is success. Handles of the driver are opaque pointers. */
typedef struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*primary_context)(void **context, int device);
    int (*get_context)(void **context);
    int (*set_context)(void *context);
    int (*wait)(void); /* for all work of the context */
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*set_attribute)(void *function, int attribute, int value);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared_bytes, void *stream, void **arguments, void **extra);
    int (*launch_ex)(const CudaLaunch *config, void *function, void **arguments, void **extra);
    int (*copy)(uint64_t target, uint64_t source, size_t nbytes, void *stream);
    int (*upload)(uint64_t target, const void *source, size_t nbytes, void *stream);
    int (*set_words)(uint64_t target, unsigned value, size_t count, void *stream);
    int (*is_capturing)(void *stream, int *status);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch_graph)(void *executable, void *stream);
    int (*destroy_executable)(void *executable);
    int (*destroy_graph)(void *graph);
    int (*create_stream)(void **stream, unsigned flags);
    int (*destroy_stream)(void *stream);
    int (*error_name)(int status, const char **name);
    int (*error_text)(int status, const char **text);
} CudaDriver;

extern PyTypeObject CudaModule_Type;

/* The driver. NULL with RuntimeError if libcuda is missing or too old. */
const CudaDriver *cuda_driver(void);
/* Returns 0 for status 0. Returns -1 and sets a RuntimeError for any other status; the error says that the driver failed while `what`. */
int cuda_check(int status, const char *what);
/* The context of the device, which other libraries in the process use too. NULL with RuntimeError. */
void *cuda_context(int index);

/* Selects the device on this thread. before: for cuda_leave, which selects the context again that was selected, or none. */
int cuda_enter(int index, void **before);
void cuda_leave(void *before);
/* The same for deallocators of modules and streams of the device: errors are ignored, and an exception that is set stays. */
void *cuda_enter_again(int index);

extern PyMethodDef cuda_functions[];

#endif
