/* The smallest beginning of a program on a Cortex-M4: a vector table, memory set up, the self-test, and its end told to the host. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern uint32_t _stack_top, _data_load, _data_start, _data_end, _bss_start, _bss_end;
extern void initialise_monitor_handles(void);
int main(void);

void reset(void);

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88U |= 0xFU << 20; /* the floating-point unit is off after reset */
    memcpy(&_data_start, &_data_load, (size_t)((char *)&_data_end - (char *)&_data_start));
    memset(&_bss_start, 0, (size_t)((char *)&_bss_end - (char *)&_bss_start));
    initialise_monitor_handles();
    exit(main());
}

static void stop(void)
{
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    &_stack_top, (void *)reset, (void *)stop, (void *)stop, (void *)stop, (void *)stop, (void *)stop,
};

void _init(void);
void _fini(void);
void _init(void) {}
void _fini(void) {}
