/*
 * Self-test: compares the outputs of model.c with those of Python in double precision for the same inputs. Prints the
 * largest difference and a checksum of the outputs, which is equal on all machines with IEEE 754 arithmetic.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "model.h"

/* [model: vectors] */
enum { TEST_STEPS = 64 };
static const model_real TEST_U[TEST_STEPS][MODEL_DIM(MODEL_INPUTS)] = {
    {-0x1.7f02c7255bbccp-5},
    {-0x1.8b2c5a40d9d52p-2},
    {-0x1.180b373fd6bddp+0},
    {-0x1.830c6936f907fp-1},
    {-0x1.a4564d14ed6c8p-4},
    {-0x1.0e939f983b935p-1},
    {-0x1.d62754867ed82p+0},
    {0x1.19d95f0ff7086p-1},
    {0x1.e2e2393fc900bp-1},
    {-0x1.1c9e3afe13670p+1},
    {-0x1.36f57807f114ap+0},
    {-0x1.ad46720d6291ep-3},
    {0x1.17e7ff1c7dd6ep-2},
    {-0x1.779d9377c42b2p-1},
    {-0x1.28251619266d6p-3},
    {0x1.6008fd3e4f6c9p-1},
    {-0x1.7891dbec8a40ep-2},
    {0x1.3f711e343ab49p-1},
    {0x1.4fd8e0755369fp+0},
    {-0x1.046ab6c06764dp-1},
    {0x1.5e2535f4ed40bp-1},
    {0x1.ba60240df0dbfp-3},
    {0x1.4e8c9ce5811eep-3},
    {0x1.fb6167ca3bf04p-4},
    {-0x1.e756f4d8b634dp-2},
    {0x1.099c581b0f0bep-1},
    {0x1.856af57f1c89dp-2},
    {-0x1.7aa76bb40b888p-6},
    {-0x1.3dad747575fe7p-1},
    {0x1.2156a59426474p+0},
    {-0x1.2e49b8ed44399p-1},
    {-0x1.2244aef43988fp+0},
    {-0x1.284241e59475ap-4},
    {0x1.aa7d13ef9d6f0p-1},
    {0x1.224ceddc736c7p+1},
    {-0x1.5d0bd618213ccp-2},
    {0x1.bf7c00649c1a6p-1},
    {0x1.ad28f04fe6ca2p-4},
    {-0x1.a3b02d7c9d4adp+0},
    {-0x1.9407ee3a18742p-2},
    {0x1.df1ffd2b869bep-4},
    {0x1.ebd0e1ae73d08p-2},
    {-0x1.437622f9a2f72p-1},
    {0x1.1d087ac5b217ap-1},
    {0x1.ae7b524a11c6cp+0},
    {0x1.7650c46c85d82p-3},
    {-0x1.33388d2bca852p-1},
    {0x1.e072c0ea08b20p+0},
    {-0x1.da46b6143122cp-3},
    {0x1.3e496e5e09c08p-1},
    {-0x1.631433a11ac81p-1},
    {-0x1.d3fd2c0cceab8p+0},
    {0x1.f22baefe51302p-4},
    {0x1.21db7ace29309p-1},
    {0x1.3fbb5c1315ff3p+0},
    {0x1.28b3549d3c214p-4},
    {0x1.3f0c1d45c9635p+0},
    {0x1.7ac9d2dd27027p-2},
    {-0x1.f33df59e0cdfbp-1},
    {0x1.30ccfdf3fd25fp+0},
    {-0x1.b2996a809b70fp+0},
    {-0x1.5bdd234696c38p-1},
    {0x1.a5e41f746d07fp+0},
    {-0x1.777e399a17b34p-1}};
static const double TEST_Y[TEST_STEPS][MODEL_DIM(MODEL_OUTPUTS)] = {
    {0},
    {-0x1.26b806f4cfc30p-17},
    {-0x1.6a4fe03d81979p-13},
    {-0x1.24bb60d92d950p-10},
    {-0x1.0a55543a084a8p-8},
    {-0x1.4f4ed935ad149p-7},
    {-0x1.4bffd0345f9afp-6},
    {-0x1.1a6babdfc3c07p-5},
    {-0x1.afd55c704b756p-5},
    {-0x1.2b7f0d092b374p-4},
    {-0x1.7c2e16d0dd4a3p-4},
    {-0x1.c157276a402afp-4},
    {-0x1.f4d916d44d998p-4},
    {-0x1.084e68d5ab738p-3},
    {-0x1.0796107958c47p-3},
    {-0x1.edeab31e11303p-4},
    {-0x1.ac1dad3b64351p-4},
    {-0x1.4aa32c4a14eadp-4},
    {-0x1.9a460668b9c86p-5},
    {-0x1.c0660a235d7aep-7},
    {0x1.bba3c221bfe5bp-6},
    {0x1.1e5096d2cf2fap-4},
    {0x1.ca9405d15fbeep-4},
    {0x1.3338554c1f389p-3},
    {0x1.71f7089924523p-3},
    {0x1.9ab275bd84b27p-3},
    {0x1.a7b3802c06710p-3},
    {0x1.96264f9b66478p-3},
    {0x1.667c063f6ab47p-3},
    {0x1.1bbd5dc0ef1dbp-3},
    {0x1.772622ed960d6p-4},
    {0x1.39948c453c918p-5},
    {-0x1.1a4e140ba0513p-6},
    {-0x1.2408fbb61a99bp-4},
    {-0x1.eca1dea07301fp-4},
    {-0x1.47527d18d2e3ep-3},
    {-0x1.7bacdc0dd86d1p-3},
    {-0x1.8cb050f3b799fp-3},
    {-0x1.77485315ca759p-3},
    {-0x1.3dfd81c4312bcp-3},
    {-0x1.d3885afabbba1p-4},
    {-0x1.0e41bbdffe9c7p-4},
    {-0x1.17d16b12023ddp-6},
    {0x1.ba640d66c789bp-6},
    {0x1.fc2fd58c0a73fp-5},
    {0x1.61d5ff0c17947p-4},
    {0x1.9e95bae149757p-4},
    {0x1.be9c86b4b6e0bp-4},
    {0x1.cec093375f19fp-4},
    {0x1.dd5657129bbc8p-4},
    {0x1.f4432a5c8645ep-4},
    {0x1.0ae1bc0566bccp-3},
    {0x1.1c39614ff4439p-3},
    {0x1.247be0bf9a8b9p-3},
    {0x1.19710357c1767p-3},
    {0x1.e8384c29cf559p-4},
    {0x1.65599a8b7c0bap-4},
    {0x1.633fe97d8d9e8p-5},
    {-0x1.03c27162e9250p-7},
    {-0x1.f18d6186e1ea9p-5},
    {-0x1.be138254b82bcp-4},
    {-0x1.2ca08c66cbf45p-3},
    {-0x1.5e28686e2069fp-3},
    {-0x1.704ce363c8e9fp-3}};
static const double TEST_ALLOWED[MODEL_DIM(MODEL_OUTPUTS)] = {
    0x1.7a34237ed5ae7p-40};
/* [end] */

/* FNV-1a over the bytes of a number, lowest first for either byte order. */
static uint64_t with_bits(uint64_t checksum, double value)
{
    uint64_t bits;
    int i;

    memcpy(&bits, &value, sizeof bits);
    for (i = 0; i < 8; i++) {
        checksum = (checksum ^ (bits & 0xFFU)) * UINT64_C(1099511628211);
        bits >>= 8;
    }
    return checksum;
}

int main(void)
{
    static model_state state;
    static model_real y[MODEL_DIM(MODEL_OUTPUTS)];
    uint64_t checksum = UINT64_C(14695981039346656037);
    double worst = 0.0;
    int failures = 0;
    int i;
    int k;

    model_init(&state);
    for (k = 0; k < TEST_STEPS; k++) {
        model_step(&state, TEST_U[k], y);
        for (i = 0; i < MODEL_OUTPUTS; i++) {
            const double difference = (double)y[i] - TEST_Y[k][i];
            const double size = difference < 0.0 ? -difference : difference;
            const double share = size / TEST_ALLOWED[i];
            if (!(share <= 1.0)) {
                failures++;
            }
            if (share > worst) {
                worst = share;
            }
            checksum = with_bits(checksum, (double)y[i]);
        }
    }
    printf("model: %s; %d steps, largest error %.2e of the bound, checksum of the outputs %08lx%08lx\n",
           failures == 0 ? "passed" : "FAILED", TEST_STEPS, worst, (unsigned long)(checksum >> 32),
           (unsigned long)(checksum & 0xFFFFFFFFU));
    return failures == 0 ? 0 : 1;
}
