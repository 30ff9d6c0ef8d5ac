/* The state of a thread that every op call reads. */
#ifndef EAGER_THREAD_STATE_H
#define EAGER_THREAD_STATE_H

#include <features.h>

/* Variables that every op call reads. glibc keeps room for thread-local variables of libraries that load late ("initial-exec"):
 * an instruction reads them, where other C libraries take a call. */
#ifdef __GLIBC__
#define HOT_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define HOT_THREAD_LOCAL _Thread_local
#endif

extern HOT_THREAD_LOCAL int tls_grad_disabled;
extern HOT_THREAD_LOCAL int tls_mode_depth; /* dispatch modes on the stack; above them the ambient word (eager/base/thread_state.py) */
extern HOT_THREAD_LOCAL int tls_inference;  /* new tensors get EAGER_INFERENCE; a view takes the flag of its base */

/* Bit 0: gradients are recorded. Bit 1: inference mode. */
int grad_modes(void);
int mode_depth(void);
#endif
