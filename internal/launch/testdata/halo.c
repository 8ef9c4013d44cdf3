static double halo[8192];

double halo_sum(void)
{
    double s = 0;
    for (int i = 0; i < 8192; i++)
        s += halo[i]++;
    return s;
}

void keep(void *p)
{
    *(volatile char *)p = 1;
    ((double *)p)[9] = halo[3];
}
