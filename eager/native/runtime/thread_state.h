/* The state of a thread that every op call reads. */
#ifndef EAGER_THREAD_STATE_H
#define EAGER_THREAD_STATE_H

extern _Thread_local int tls_grad_disabled;
extern _Thread_local int tls_mode_depth; /* dispatch modes on the stack; above them the ambient word (eager/base/thread_state.py) */
extern _Thread_local int tls_inference;  /* new tensors get EAGER_INFERENCE; a view takes the flag of its base */

/* Bit 0: gradients are recorded. Bit 1: inference mode. */
int grad_modes(void);
int mode_depth(void);
#endif
