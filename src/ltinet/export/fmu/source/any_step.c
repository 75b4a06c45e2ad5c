/*
 * z' = lambda z + b u over a time h, u a straight line from u_now to u_next:
 *     z <- e^x z + h (phi1(x) - phi2(x)) b u_now + h phi2(x) b u_next,   x = lambda h,
 * phi1(x) = (e^x - 1)/x, phi2(x) = (e^x - 1 - x)/x^2. Closed form for reals and pairs; for dense blocks the Taylor series
 * of phi2 at h/2^s, phi1 = 1 + x phi2, e^x - 1 = x phi1, then s doublings.
 */
#include "any_step.h"

#include <math.h>
#include <string.h>

/* [model: continuous] */
static const double RATE_RE[1] = {0};
static const double RATE_IM[1] = {0};
static const double B[1][1] = {{0}};
/* [end] */

#if MODEL_STATES > 0
enum { TERMS = 18, FIRST_IMAGINARY = MODEL_PAIRS, FIRST_REAL = 2 * MODEL_PAIRS };

/* phi1 and phi2 of x = re + i im: a series where the subtractions would lose digits, of up to 18 terms for |x| < 1. */
static void phi_functions(double re, double im, double first[2], double second[2])
{
    if (re * re + im * im < 1.0) {
        double s_re = 1.0;
        double s_im = 0.0;
        int k;
        for (k = TERMS; k > 0; k--) {
            const double t_re = (s_re * re - s_im * im) / (k + 2);
            const double t_im = (s_re * im + s_im * re) / (k + 2);
            s_re = 1.0 + t_re;
            s_im = t_im;
        }
        second[0] = 0.5 * s_re;
        second[1] = 0.5 * s_im;
        first[0] = 1.0 + (re * second[0] - im * second[1]);
        first[1] = re * second[1] + im * second[0];
    } else {
        const double size = re * re + im * im;
        const double grown = exp(re);
        const double a = grown * cos(im) - 1.0;
        const double b = grown * sin(im);
        first[0] = (a * re + b * im) / size;
        first[1] = (b * re - a * im) / size;
        second[0] = ((first[0] - 1.0) * re + first[1] * im) / size;
        second[1] = (first[1] * re - (first[0] - 1.0) * im) / size;
    }
}

static void prepare_scalars(any_step *self, double h)
{
    int i;

    for (i = 0; i < SCALARS; i++) {
        const double re = RATE_RE[i] * h;
        const double im = RATE_IM[i] * h;
        double first[2];
        double second[2];
        phi_functions(re, im, first, second);
        self->p_re[i] = exp(re) * cos(im);
        self->p_im[i] = exp(re) * sin(im);
        self->begin_re[i] = h * (first[0] - second[0]);
        self->begin_im[i] = h * (first[1] - second[1]);
        self->end_re[i] = h * second[0];
        self->end_im[i] = h * second[1];
    }
}

static double driven(int state, const double u[])
{
    double sum = 0.0;
    int j;

    for (j = 0; j < MODEL_INPUTS; j++) {
        sum += B[j][state] * u[j];
    }
    (void)state;
    (void)u;
    return sum;
}

static void take_scalars(const any_step *self, double z[], const double u_now[], const double u_next[])
{
    int i;

    for (i = 0; i < MODEL_PAIRS; i++) {
        const double re = z[i];
        const double im = z[FIRST_IMAGINARY + i];
        const double now_re = driven(i, u_now);
        const double now_im = driven(FIRST_IMAGINARY + i, u_now);
        const double next_re = driven(i, u_next);
        const double next_im = driven(FIRST_IMAGINARY + i, u_next);
        z[i] = (self->p_re[i] * re - self->p_im[i] * im) + (self->begin_re[i] * now_re - self->begin_im[i] * now_im) +
               (self->end_re[i] * next_re - self->end_im[i] * next_im);
        z[FIRST_IMAGINARY + i] = (self->p_im[i] * re + self->p_re[i] * im) +
                                 (self->begin_im[i] * now_re + self->begin_re[i] * now_im) +
                                 (self->end_im[i] * next_re + self->end_re[i] * next_im);
    }
    for (i = 0; i < MODEL_REALS; i++) {
        const int own = FIRST_REAL + i;
        z[own] = self->p_re[MODEL_PAIRS + i] * z[own] + self->begin_re[MODEL_PAIRS + i] * driven(own, u_now) +
                 self->end_re[MODEL_PAIRS + i] * driven(own, u_next);
    }
}
#endif

#if MODEL_BLOCKS > 0
static void multiply(double product[], const double left[], const double right[], int size)
{
    int i;
    int j;
    int k;

    for (i = 0; i < size; i++) {
        for (j = 0; j < size; j++) {
            product[i * size + j] = 0.0;
        }
        for (k = 0; k < size; k++) {
            for (j = 0; j < size; j++) {
                product[i * size + j] += left[i * size + k] * right[k * size + j];
            }
        }
    }
}

static double largest_row_sum(const double F[], int size)
{
    double largest = 0.0;
    int i;
    int j;

    for (i = 0; i < size; i++) {
        double sum = 0.0;
        for (j = 0; j < size; j++) {
            sum += fabs(F[i * size + j]);
        }
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

/* e^{2x} - 1 = E (E + 2), phi1(2x) = (E/2 + 1) phi1, phi2(2x) = (phi1 phi1 + 2 phi2)/4 with E = e^x - 1. */
static void double_step(double p_minus_1[], double first[], double second[], int size)
{
    double product[MODEL_LARGEST_BLOCK * MODEL_LARGEST_BLOCK];
    const int entries = size * size;
    int i;

    multiply(product, first, first, size);
    for (i = 0; i < entries; i++) {
        second[i] = 0.25 * product[i] + 0.5 * second[i];
    }
    multiply(product, p_minus_1, first, size);
    for (i = 0; i < entries; i++) {
        first[i] += 0.5 * product[i];
    }
    multiply(product, p_minus_1, p_minus_1, size);
    for (i = 0; i < entries; i++) {
        p_minus_1[i] = 2.0 * p_minus_1[i] + product[i];
    }
}

static void prepare_block(double p_minus_1[], double first[], double second[], const double F[], int size, double h)
{
    double x[MODEL_LARGEST_BLOCK * MODEL_LARGEST_BLOCK];
    double product[MODEL_LARGEST_BLOCK * MODEL_LARGEST_BLOCK];
    const int entries = size * size;
    int halvings = 0;
    int i;
    int k;

    (void)frexp(2.0 * largest_row_sum(F, size) * h, &halvings); /* |F h| / 2^halvings <= 1/2 */
    halvings = halvings > 0 ? halvings : 0;
    for (i = 0; i < entries; i++) {
        x[i] = ldexp(F[i] * h, -halvings);
        second[i] = i % (size + 1) == 0 ? 1.0 : 0.0;
    }
    for (k = TERMS; k > 0; k--) { /* 2 sum x^k / (k + 2)! */
        multiply(product, x, second, size);
        for (i = 0; i < entries; i++) {
            second[i] = product[i] / (k + 2) + (i % (size + 1) == 0 ? 1.0 : 0.0);
        }
    }
    for (i = 0; i < entries; i++) {
        second[i] *= 0.5;
    }
    multiply(first, x, second, size);
    for (i = 0; i < size; i++) {
        first[i * (size + 1)] += 1.0;
    }
    multiply(p_minus_1, x, first, size);
    for (k = 0; k < halvings; k++) {
        double_step(p_minus_1, first, second, size);
    }
}

static void prepare_blocks(any_step *self, double h)
{
    int b;
    int i;

    for (b = 0; b < MODEL_BLOCKS; b++) {
        const int at = BLOCK_FIRST_ENTRY[b];
        const int entries = BLOCK_SIZE[b] * BLOCK_SIZE[b];
        prepare_block(self->p_minus_1 + at, self->begin + at, self->end + at, F_BLOCK + at, BLOCK_SIZE[b], h);
        for (i = at; i < at + entries; i++) {
            self->end[i] *= h;
            self->begin[i] = h * self->begin[i] - self->end[i];
        }
    }
}

static void take_blocks(const any_step *self, double z[], const double u_now[], const double u_next[])
{
    double change[MODEL_LARGEST_BLOCK];
    int b;
    int i;
    int j;

    for (b = 0; b < MODEL_BLOCKS; b++) {
        const int first = BLOCK_FIRST_STATE[b];
        const int size = BLOCK_SIZE[b];
        const int at = BLOCK_FIRST_ENTRY[b];
        for (i = 0; i < size; i++) {
            change[i] = 0.0;
            for (j = 0; j < size; j++) {
                const int entry = at + i * size + j;
                change[i] += self->p_minus_1[entry] * z[first + j] + self->begin[entry] * driven(first + j, u_now) +
                             self->end[entry] * driven(first + j, u_next);
            }
        }
        for (i = 0; i < size; i++) {
            z[first + i] += change[i];
        }
    }
}
#endif

void any_step_prepare(any_step *self, double length)
{
    if (self->length == length) {
        return;
    }
    self->length = length;
#if MODEL_STATES > 0
    prepare_scalars(self, length);
#endif
#if MODEL_BLOCKS > 0
    prepare_blocks(self, length);
#endif
}

void any_step_take(const any_step *self, model_state *state, const double u_now[], const double u_next[])
{
#if MODEL_STATES > 0
    take_scalars(self, state->z, u_now, u_next);
#endif
#if MODEL_BLOCKS > 0
    take_blocks(self, state->z, u_now, u_next);
#endif
    (void)self;
    (void)state;
    (void)u_now;
    (void)u_next;
}
