/* The state of a code object, kept in its slot for extensions. */
#ifndef FRAMEJIT_CODE_STATE_H
#define FRAMEJIT_CODE_STATE_H

#include "state.h"

typedef struct {
    bool skip;
    uint8_t *resume_points;     /* one byte per code unit: may a re-entry start here */
    int n_units;
} CodeState;
CodeState *code_state(PyCodeObject *code, bool create);   /* NULL with an error only if create */


int code_state_init(void);
#endif
