/* So many steps under an input of period 8, and the outputs of the last 8 of them. */
#include "model.h"

void many_steps(long count, const model_real *period, model_real *y);

void many_steps(long count, const model_real *period, model_real *y)
{
    static model_state state;
    long k;

    model_init(&state);
    for (k = 0; k < count; k++) {
        model_step(&state, period + (k % 8) * MODEL_INPUTS, y + (k % 8) * MODEL_OUTPUTS);
    }
}
