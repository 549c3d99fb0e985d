# A C program with threads, compiled and run.
set -euo pipefail
cat >hello.c <<'C'
#include <pthread.h>
#include <stdio.h>
static void *work(void *p) { *(int *)p *= 2; return 0; }
int main(void) {
	int n = 21;
	pthread_t t;
	if (pthread_create(&t, 0, work, &n) || pthread_join(t, 0)) return 1;
	printf("%d\n", n);
}
C
gcc -O1 -pthread -o hello hello.c
./hello
