/*
 * One exact step z <- P z + G0 u_now + G1 u_next and outputs y = C z + D u; P is made of pairs (complex numbers),
 * reals and small dense blocks. States stand in this order: real parts of all pairs, their imaginary parts, reals, blocks.
 */
#include "model.h"

#if defined(__FAST_MATH__)
#error "-ffast-math would change the sums of this file; compile without it"
#endif

/* [model: tables] */
static const model_real P_RE[MODEL_DIM(MODEL_PAIRS)] = {
    0x1.ed008c7ccb834p-1, 0x1.c832b8f703f1ap-1};

static const model_real P_IM[MODEL_DIM(MODEL_PAIRS)] = {
    0x1.f75f50ded6cc3p-3, 0x1.a553749f981c3p-2};

static const model_real G0[MODEL_DIM(MODEL_INPUTS)][MODEL_DIM(MODEL_STATES)] = {
    {
    0x1.dd77e764859c0p-7, 0x1.d3255841a2202p-7, -0x1.6309fde9bb909p-4, -0x1.8a28759125070p-5}};

static const model_real G1[MODEL_DIM(MODEL_INPUTS)][MODEL_DIM(MODEL_STATES)] = {
    {
    0x1.dfb6a83e64daep-8, 0x1.d9c6e8180c681p-8, -0x1.678644a1e6edap-4, -0x1.996c3f27c4138p-5}};

static const model_real C[MODEL_DIM(MODEL_OUTPUTS)][MODEL_DIM(MODEL_PADDED)] = {
    {
    0x1.6a09e667f3bcep-3, -0x1.6a09e667f3bd1p-3, 0x1.57e479c763192p-57, 0}};

static const model_real D[MODEL_DIM(MODEL_OUTPUTS)][MODEL_DIM(MODEL_INPUTS)] = {
    {
    0}};

static const model_real START[MODEL_DIM(MODEL_STATES)] = {
    0, 0, 0, 0};
/* [end] */

enum { FIRST_IMAGINARY = MODEL_PAIRS, FIRST_REAL = 2 * MODEL_PAIRS };

#if MODEL_STATES > 0
/* Add the contribution of the inputs of a step to the propagated state. */
static model_real driven(model_real sum, int state, const model_real u_now[], const model_real u_next[])
{
    int j;

    for (j = 0; j < MODEL_INPUTS; j++) {
        sum += G0[j][state] * u_now[j];
#if MODEL_LINEAR
        sum += G1[j][state] * u_next[j];
#endif
    }
    (void)u_now;
    (void)u_next;
    return sum;
}
#endif

#if MODEL_SLOW > 0
/* Add to a slow state and store the rounding error of the sum (Knuth's two-sum, valid for any order of sizes). */
static void add_compensated(model_real *state, model_real *lost, model_real increment)
{
    const model_real before = *state;
    const model_real added = increment + *lost;
    const model_real sum = before + added;
    const model_real share = sum - before;

    *lost = (before - (sum - share)) + (added - share);
    *state = sum;
}
#endif

#if MODEL_PAIRS > 0
static void advance_pairs(model_real z[], const model_real u_now[], const model_real u_next[])
{
    int i;

    for (i = 0; i < MODEL_FAST_PAIRS; i++) {
        const model_real re = z[i];
        const model_real im = z[FIRST_IMAGINARY + i];
        z[i] = driven(P_RE[i] * re - P_IM[i] * im, i, u_now, u_next);
        z[FIRST_IMAGINARY + i] = driven(P_IM[i] * re + P_RE[i] * im, FIRST_IMAGINARY + i, u_now, u_next);
    }
}
#endif

#if MODEL_PAIRS > MODEL_FAST_PAIRS
/* Slow pairs in increments: their tables hold P - 1, which would have lost its digits beside 1. */
static void advance_slow_pairs(model_real z[], model_real lost[], const model_real u_now[], const model_real u_next[])
{
    int i;

    for (i = MODEL_FAST_PAIRS; i < MODEL_PAIRS; i++) {
        const model_real re = z[i];
        const model_real im = z[FIRST_IMAGINARY + i];
        model_real *own = lost + 2 * (i - MODEL_FAST_PAIRS);
        add_compensated(&z[i], own, driven(P_RE[i] * re - P_IM[i] * im, i, u_now, u_next));
        add_compensated(&z[FIRST_IMAGINARY + i], own + 1,
                        driven(P_IM[i] * re + P_RE[i] * im, FIRST_IMAGINARY + i, u_now, u_next));
    }
}
#endif

#if MODEL_REALS > 0
static void advance_reals(model_real z[], const model_real u_now[], const model_real u_next[])
{
    int i;

    for (i = 0; i < MODEL_FAST_REALS; i++) {
        z[FIRST_REAL + i] = driven(P_REAL[i] * z[FIRST_REAL + i], FIRST_REAL + i, u_now, u_next);
    }
}
#endif

#if MODEL_REALS > MODEL_FAST_REALS
static void advance_slow_reals(model_real z[], model_real lost[], const model_real u_now[], const model_real u_next[])
{
    int i;

    for (i = MODEL_FAST_REALS; i < MODEL_REALS; i++) {
        model_real *own = &z[FIRST_REAL + i];
        add_compensated(own, lost + (i - MODEL_FAST_REALS), driven(P_REAL[i] * *own, FIRST_REAL + i, u_now, u_next));
    }
}
#endif

#if MODEL_BLOCKS > 0
/* A compile-time constant where all blocks have one size. */
#define STATES_OF_BLOCK(b) (MODEL_EQUAL_BLOCKS ? MODEL_LARGEST_BLOCK : BLOCK_SIZE[b])

/* A dense block: P, or P - 1 for a slow one, column by column, times its states. */
static void multiply_block(model_real product[], const model_real P[], int size, const model_real z[])
{
    int i;
    int j;

    for (i = 0; i < size; i++) {
        product[i] = P[i] * z[0];
    }
    for (j = 1; j < size; j++) {
        for (i = 0; i < size; i++) {
            product[i] += P[j * size + i] * z[j];
        }
    }
}

static void advance_blocks(model_real z[], const model_real u_now[], const model_real u_next[])
{
    model_real product[MODEL_LARGEST_BLOCK];
    int b;
    int i;

    for (b = 0; b < MODEL_FAST_BLOCKS; b++) {
        const int first = BLOCK_FIRST_STATE[b];
        const int size = STATES_OF_BLOCK(b);
        multiply_block(product, P_BLOCK + BLOCK_FIRST_ENTRY[b], size, z + first);
        for (i = 0; i < size; i++) {
            z[first + i] = driven(product[i], first + i, u_now, u_next);
        }
    }
}
#endif

#if MODEL_BLOCKS > MODEL_FAST_BLOCKS
static void advance_slow_blocks(model_real z[], model_real lost[], const model_real u_now[], const model_real u_next[])
{
    model_real product[MODEL_LARGEST_BLOCK];
    int b;
    int i;

    for (b = MODEL_FAST_BLOCKS; b < MODEL_BLOCKS; b++) {
        const int first = BLOCK_FIRST_STATE[b];
        const int size = STATES_OF_BLOCK(b);
        multiply_block(product, P_BLOCK + BLOCK_FIRST_ENTRY[b], size, z + first);
        for (i = 0; i < size; i++) {
            add_compensated(&z[first + i], lost + (first + i - BLOCK_FIRST_STATE[MODEL_FAST_BLOCKS]),
                            driven(product[i], first + i, u_now, u_next));
        }
    }
}
#endif

void model_advance(model_state *self, const model_real u_now[], const model_real u_next[])
{
    /* Copies cannot alias the states, so that the loops need not read them again for every state. */
    model_real now[MODEL_DIM(MODEL_INPUTS)] = {0};
    model_real next[MODEL_DIM(MODEL_INPUTS)] = {0};
    int j;

    for (j = 0; j < MODEL_INPUTS; j++) {
        now[j] = u_now[j];
        next[j] = u_next[j];
    }
#if MODEL_PAIRS > 0
    advance_pairs(self->z, now, next);
#endif
#if MODEL_REALS > 0
    advance_reals(self->z, now, next);
#endif
#if MODEL_BLOCKS > 0
    advance_blocks(self->z, now, next);
#endif
#if MODEL_PAIRS > MODEL_FAST_PAIRS
    advance_slow_pairs(self->z, self->lost, now, next);
#endif
#if MODEL_REALS > MODEL_FAST_REALS
    advance_slow_reals(self->z, self->lost + MODEL_LOST_OF_REALS, now, next);
#endif
#if MODEL_BLOCKS > MODEL_FAST_BLOCKS
    advance_slow_blocks(self->z, self->lost + MODEL_LOST_OF_BLOCKS, now, next);
#endif
    (void)self;
    (void)u_now;
    (void)u_next;
    (void)now;
    (void)next;
}

void model_output(const model_state *self, const model_real u[], model_real y[])
{
    int i;
    int j;
    int lane;
    int half;

    for (i = 0; i < MODEL_OUTPUTS; i++) {
        /* Several independent partial sums: they run in parallel and have smaller rounding errors. */
        model_real sums[MODEL_LANES] = {0};
        model_real sum;

        for (j = 0; j < MODEL_PADDED; j += MODEL_LANES) {
            for (lane = 0; lane < MODEL_LANES; lane++) {
                sums[lane] += C[i][j + lane] * self->z[j + lane];
            }
        }
        for (half = MODEL_LANES / 2; half > 0; half /= 2) {
            for (lane = 0; lane < half; lane++) {
                sums[lane] += sums[lane + half];
            }
        }
        sum = sums[0];
        for (j = 0; j < MODEL_INPUTS; j++) {
            sum += D[i][j] * u[j];
        }
        y[i] = sum;
    }
    (void)self;
    (void)u;
    (void)y;
}

void model_step(model_state *self, const model_real u[], model_real y[])
{
    int j;

    if (self->started != 0) {
        model_advance(self, self->u, u);
    }
    for (j = 0; j < MODEL_INPUTS; j++) {
        self->u[j] = u[j];
    }
    self->started = 1;
    model_output(self, u, y);
}

void model_init(model_state *self)
{
    int i;

    for (i = 0; i < MODEL_DIM(MODEL_PADDED); i++) {
        self->z[i] = 0;
    }
    for (i = 0; i < MODEL_DIM(MODEL_INPUTS); i++) {
        self->u[i] = 0;
    }
    self->started = 0;
    model_set_state(self, START);
}

void model_reset(model_state *self)
{
    model_init(self);
}

void model_get_state(const model_state *self, model_real z[])
{
    int i;

    for (i = 0; i < MODEL_STATES; i++) {
        z[i] = self->z[i];
    }
    (void)self;
    (void)z;
}

void model_set_state(model_state *self, const model_real z[])
{
    int i;

    for (i = 0; i < MODEL_STATES; i++) {
        self->z[i] = z[i];
    }
#if MODEL_SLOW > 0
    for (i = 0; i < MODEL_SLOW; i++) {
        self->lost[i] = 0;
    }
#endif
    (void)self;
    (void)z;
}

#if MODEL_USER_STATES
void model_get_user_state(const model_state *self, model_real x[])
{
    int i;
    int j;

    for (i = 0; i < MODEL_STATES; i++) {
        model_real sum = 0;
        for (j = 0; j < MODEL_STATES; j++) {
            sum += T[i][j] * self->z[j];
        }
        x[i] = sum;
    }
    (void)self;
    (void)x;
}
#endif
