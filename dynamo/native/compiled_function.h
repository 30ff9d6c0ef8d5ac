/* The callable that @compile returns. */
#ifndef FRAMEJIT_COMPILED_FUNCTION_H
#define FRAMEJIT_COMPILED_FUNCTION_H

#include "region.h"

extern PyTypeObject CompiledFunctionType;
#endif
