/*
 * Modal code as one would write it by hand for one model: sizes known, tables at hand, nothing to save or restore.
 * With TUNED, outputs are summed in eight parts, as the exported code does.
 */
#include "measured.h"

enum { PAIRS = N / 2 };

static double p_re[PAIRS], p_im[PAIRS], re[PAIRS], im[PAIRS], g_re[M][PAIRS], g_im[M][PAIRS], c_re[P][PAIRS], c_im[P][PAIRS],
    d[P][M];

void prepare(void)
{
    int i;
    int j;

    for (i = 0; i < PAIRS; i++) {
        p_re[i] = 0.9;
        p_im[i] = 0.1 + 0.001 * i;
        for (j = 0; j < M; j++) {
            g_re[j][i] = g_im[j][i] = 0.1;
        }
        for (j = 0; j < P; j++) {
            c_re[j][i] = c_im[j][i] = 0.1;
        }
    }
}

void step(const double *u, double *y)
{
    int i;
    int j;

    for (j = 0; j < P; j++) {
        double sum = 0.0;
#ifdef TUNED
        double sums[8] = {0};
        int lane;
        for (i = 0; i + 8 <= PAIRS; i += 8) {
            for (lane = 0; lane < 8; lane++) {
                sums[lane] += c_re[j][i + lane] * re[i + lane] + c_im[j][i + lane] * im[i + lane];
            }
        }
        for (lane = 0; lane < 8; lane++) {
            sum += sums[lane];
        }
#else
        i = 0;
#endif
        for (; i < PAIRS; i++) {
            sum += c_re[j][i] * re[i] + c_im[j][i] * im[i];
        }
        for (i = 0; i < M; i++) {
            sum += d[j][i] * u[i];
        }
        y[j] = sum;
    }
    for (i = 0; i < PAIRS; i++) {
        double a = p_re[i] * re[i] - p_im[i] * im[i];
        double b = p_im[i] * re[i] + p_re[i] * im[i];
        for (j = 0; j < M; j++) {
            a += g_re[j][i] * u[j];
            b += g_im[j][i] * u[j];
        }
        re[i] = a;
        im[i] = b;
    }
}
