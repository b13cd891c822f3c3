// Reports an invalid value, with numbers for the error message.
MX_FN void refuse(u64* faults, i64 a, i64 b = 0, i64 c = 0) { report_fault(faults, a, b, c); }
