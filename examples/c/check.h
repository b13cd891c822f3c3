/* What the examples share. */
#include <mxnet.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with the message of the library if a call has failed. */
static void check(int32_t status)
{
    if (status == MX_OK)
        return;
    mx_error error = {.size = sizeof error};
    mx_last_error(&error);
    fprintf(stderr, "error %d: %s\n", error.status, error.message);
    exit(1);
}
