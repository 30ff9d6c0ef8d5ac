/* Written by `python -m dynamo.guards.kind_files` from the table in dynamo/guards/kinds.py; do not edit. */
#ifndef FRAMEJIT_GUARD_KINDS_H
#define FRAMEJIT_GUARD_KINDS_H

typedef enum {  /* GuardOp */
    G_CONST, G_WEAK, G_GLOBAL, G_ATTR, G_GENERIC_ATTR, G_DICT_ATTR, G_TYPE_ATTR, G_TYPE_OF, G_DICT_ITEM, G_ITEM, G_CELL,
    G_CLOSURE, G_ITERATOR_OWNER, G_MADE, G_HELD_TYPE, G_FUNCTION_IS, G_TYPE, G_IS, G_IS_NOT, G_INT_EQ, G_FLOAT_EQ, G_STR_EQ,
    G_CONST_EQ, G_CONTENT_EQ, G_LEN, G_DICT_KEYS, G_SET_ELEMENTS, G_NO_ATTR, G_DICT_ABSENT, G_CELL_EMPTY, G_TENSOR,
    G_INT_RANGE, G_GRAD_MODE, G_AMBIENT, G_CALL_EQ, G_TYPE_ABSENT, G_PLAIN_NEW, G_ITERATOR_STATE, G_SHAPE, G_SAME,
    G_DISTINCT, G_ALIAS, G_NOT_ALIAS, G_BLOCK, G_BLOCK_END,
} GuardOp;
enum { FIRST_RELATION = G_SHAPE, LAST_RELATION = G_NOT_ALIAS };

/* Name, operation, operands by letter (see guard_build.c), number of operands. */
#define GUARD_KINDS \
    {"const", G_CONST, "od", 2}, \
    {"weak", G_WEAK, "o:Wd", 2}, \
    {"global", G_GLOBAL, "b:Dkd", 3}, \
    {"attr", G_ATTR, "snd", 3}, \
    {"generic_attr", G_GENERIC_ATTR, "snd", 3}, \
    {"dict_attr", G_DICT_ATTR, "snd", 3}, \
    {"type_attr", G_TYPE_ATTR, "snd", 3}, \
    {"type_of", G_TYPE_OF, "sd", 2}, \
    {"dict_item", G_DICT_ITEM, "skd", 3}, \
    {"item", G_ITEM, "sid", 3}, \
    {"cell", G_CELL, "sd", 2}, \
    {"closure", G_CLOSURE, "sid", 3}, \
    {"iterator_owner", G_ITERATOR_OWNER, "sd", 2}, \
    {"made", G_MADE, "so:Cd", 3}, \
    {"held_type", G_HELD_TYPE, "bo:T", 2}, \
    {"function_is", G_FUNCTION_IS, "b:Ffo", 3}, \
    {"type", G_TYPE, "so:T", 2}, \
    {"is", G_IS, "so", 2}, \
    {"is_not", G_IS_NOT, "so", 2}, \
    {"int_eq", G_INT_EQ, "so", 2}, \
    {"float_eq", G_FLOAT_EQ, "so", 2}, \
    {"str_eq", G_STR_EQ, "so", 2}, \
    {"const_eq", G_CONST_EQ, "so", 2}, \
    {"content_eq", G_CONTENT_EQ, "so", 2}, \
    {"len", G_LEN, "si", 2}, \
    {"dict_keys", G_DICT_KEYS, "so", 2}, \
    {"set_elements", G_SET_ELEMENTS, "so", 2}, \
    {"no_attr", G_NO_ATTR, "sn", 2}, \
    {"dict_absent", G_DICT_ABSENT, "sk", 2}, \
    {"cell_empty", G_CELL_EMPTY, "s", 1}, \
    {"tensor", G_TENSOR, "so:T", 6}, \
    {"int_range", G_INT_RANGE, "sii", 3}, \
    {"grad_mode", G_GRAD_MODE, "i", 1}, \
    {"ambient", G_AMBIENT, "i", 1}, \
    {"call_eq", G_CALL_EQ, "b:Co", 2}, \
    {"type_absent", G_TYPE_ABSENT, "sn", 2}, \
    {"plain_new", G_PLAIN_NEW, "s", 1}, \
    {"iterator_state", G_ITERATOR_STATE, "so", 2}, \
    {"shape", G_SHAPE, "So", 2}, \
    {"same", G_SAME, "ss", 2}, \
    {"distinct", G_DISTINCT, "S", 1}, \
    {"alias", G_ALIAS, "ss", 2}, \
    {"not_alias", G_NOT_ALIAS, "S", 1}, \
    {"watch", G_BLOCK, "", 2}, \
    {"epoch", G_BLOCK, "", 2}, \

typedef enum {  /* ShapeStep */
    STEP_CONST, STEP_SIZE, STEP_STRIDE, STEP_OFFSET, STEP_INT, STEP_ADD, STEP_MUL, STEP_FLOORDIV, STEP_MOD, STEP_MIN,
    STEP_MAX, STEP_FLOAT, STEP_TO_FLOAT, STEP_FADD, STEP_FSUB, STEP_FMUL, STEP_FDIV, STEP_FNEG, STEP_EQ, STEP_NE, STEP_LT,
    STEP_LE, STEP_FEQ, STEP_FNE, STEP_FLT, STEP_FLE, STEP_FNOT_LT, STEP_FNOT_LE,
} ShapeStep;
enum { FIRST_END = STEP_EQ, N_STEPS = 28 };

/* Name, operands in the program, values popped, values pushed. */
#define SHAPE_STEPS \
    {"const", 1, 0, 1}, \
    {"size", 2, 0, 1}, \
    {"stride", 2, 0, 1}, \
    {"offset", 1, 0, 1}, \
    {"int", 1, 0, 1}, \
    {"add", 0, 2, 1}, \
    {"mul", 0, 2, 1}, \
    {"floordiv", 0, 2, 1}, \
    {"mod", 0, 2, 1}, \
    {"min", 0, 2, 1}, \
    {"max", 0, 2, 1}, \
    {"float", 1, 0, 1}, \
    {"to_float", 0, 1, 1}, \
    {"fadd", 0, 2, 1}, \
    {"fsub", 0, 2, 1}, \
    {"fmul", 0, 2, 1}, \
    {"fdiv", 0, 2, 1}, \
    {"fneg", 0, 1, 1}, \
    {"eq", 0, 2, 0}, \
    {"ne", 0, 2, 0}, \
    {"lt", 0, 2, 0}, \
    {"le", 0, 2, 0}, \
    {"feq", 0, 2, 0}, \
    {"fne", 0, 2, 0}, \
    {"flt", 0, 2, 0}, \
    {"fle", 0, 2, 0}, \
    {"fnot_lt", 0, 2, 0}, \
    {"fnot_le", 0, 2, 0}, \

#endif
