/*
 * Delays and an operating point around one exact step of the core, z <- P z + G x and w = C z + D x. x collects taps:
 * samples of single inputs less u0, some steps old. A delay that is no multiple of the step has taps on both sides of the
 * place where its input switches, or has its corner, inside the step.
 */
#include "model.h"

/* [model: delays] */
static const int TAP_INPUT[MODEL_DIM(MODEL_TAPS)] = {
    0, 0};
static const int TAP_LAG[MODEL_DIM(MODEL_TAPS)] = {
    6, 7};
static const int TAP_ENDS_LINE[MODEL_DIM(MODEL_TAPS)] = {
    0, 0};
static const int HISTORY_FIRST[MODEL_DIM(MODEL_INPUTS)] = {
    0};
static const int HISTORY_LENGTH[MODEL_DIM(MODEL_INPUTS)] = {
    8};
static const int WAITING_FIRST[MODEL_DIM(MODEL_OUTPUTS)] = {
    0};
static const int WAITING_LENGTH[MODEL_DIM(MODEL_OUTPUTS)] = {
    0};
static const model_real U0[MODEL_DIM(MODEL_INPUTS)] = {
    0};
static const model_real Y0[MODEL_DIM(MODEL_OUTPUTS)] = {
    0};
/* [end] */

/* Value of a tap: zero before the first sample, and no line leads to that sample. */
static model_real tapped(const model_state *self, int tap)
{
    const int input = TAP_INPUT[tap];
    int place = self->input_at[input] - TAP_LAG[tap];

    if (TAP_ENDS_LINE[tap] != 0 && self->taken == TAP_LAG[tap]) {
        return 0;
    }
    if (place < 0) {
        place += HISTORY_LENGTH[input];
    }
    return self->inputs[HISTORY_FIRST[input] + place];
}

/* Append an output to its ring buffer, and return the oldest one. */
static model_real waited(model_state *self, int output, model_real value)
{
    model_real *oldest = &self->outputs[WAITING_FIRST[output] + self->output_at[output]];
    const model_real arrived = *oldest;

    *oldest = value;
    self->output_at[output]++;
    if (self->output_at[output] == WAITING_LENGTH[output]) {
        self->output_at[output] = 0;
    }
    return arrived;
}

void model_step(model_state *self, const model_real u[], model_real y[])
{
    model_real x[MODEL_DIM(MODEL_TAPS)] = {0};
    model_real w[MODEL_DIM(MODEL_OUTPUTS)] = {0};
    int i;

    for (i = 0; i < MODEL_INPUTS; i++) {
        self->input_at[i]++;
        if (self->input_at[i] == HISTORY_LENGTH[i]) {
            self->input_at[i] = 0;
        }
        self->inputs[HISTORY_FIRST[i] + self->input_at[i]] = u[i] - U0[i];
    }
    for (i = 0; i < MODEL_TAPS; i++) {
        x[i] = tapped(self, i);
    }
    if (self->taken > 0) {
        model_core_advance(&self->core, x, x);
    }
    model_core_output(&self->core, x, w);
    for (i = 0; i < MODEL_OUTPUTS; i++) {
        model_real value = w[i];
#if MODEL_PARTIAL
        if (IS_PARTIAL[i] != 0) {
            int tap;
            value = self->partial[i];
            for (tap = 0; tap < MODEL_TAPS; tap++) {
                value += L[i][tap] * x[tap];
            }
            value = self->taken > 0 ? value : 0;
            self->partial[i] = w[i];
        }
#endif
        if (WAITING_LENGTH[i] > 0) {
            value = waited(self, i, value);
        }
        y[i] = value + Y0[i];
    }
    if (self->taken <= MODEL_LONGEST_LAG) {
        self->taken++;
    }
    (void)u;
    (void)y;
}

void model_init(model_state *self)
{
    int i;

    model_core_init(&self->core);
    for (i = 0; i < MODEL_DIM(MODEL_HISTORY); i++) {
        self->inputs[i] = 0;
    }
    for (i = 0; i < MODEL_DIM(MODEL_WAITING); i++) {
        self->outputs[i] = 0;
    }
    for (i = 0; i < MODEL_DIM(MODEL_INPUTS); i++) {
        self->input_at[i] = 0;
    }
    for (i = 0; i < MODEL_DIM(MODEL_OUTPUTS); i++) {
        self->output_at[i] = 0;
        self->partial[i] = 0;
    }
    self->taken = 0;
}

void model_reset(model_state *self)
{
    model_init(self);
}

void model_get_state(const model_state *self, model_real z[])
{
    model_core_get_state(&self->core, z);
}

void model_set_state(model_state *self, const model_real z[])
{
    model_core_set_state(&self->core, z);
#if MODEL_PARTIAL
    {
        /* Rows of these outputs read no taps. */
        const model_real x[MODEL_DIM(MODEL_TAPS)] = {0};
        model_core_output(&self->core, x, self->partial);
    }
#endif
}

#if MODEL_USER_STATES
void model_get_user_state(const model_state *self, model_real x[])
{
    model_core_get_user_state(&self->core, x);
}
#endif
