/* The exported code behind the same two functions. */
#include "measured.h"
#include "model.h"

static model_state state;

void prepare(void)
{
    model_init(&state);
}

void step(const double *u, double *y)
{
    model_step(&state, u, y);
}
