// Says that a value is wrong: three numbers for the error. Of several reports any one may stay.
MX_FN void refuse(u64* faults, i64 a, i64 b = 0, i64 c = 0) {
    faults[1] = (u64)a;
    faults[2] = (u64)b;
    faults[3] = (u64)c;
    __threadfence();
    faults[0] = 1;
}
