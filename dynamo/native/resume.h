/* Re-entry of a function's own code. */
#ifndef FRAMEJIT_RESUME_H
#define FRAMEJIT_RESUME_H

#include "state.h"

extern PyMethodDef resume_methods[];
#endif
