/* Programs that open the MPI library themselves and ask for its functions by name, as those that reach it from Python by
   ctypes or from Julia do, get the recorded ones. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <string.h>

#if defined __x86_64__ && defined __GLIBC__ && defined GW_FORTRAN_BINDINGS

__attribute__((visibility("hidden"))) void *gw_dlsym_real;

__attribute__((visibility("hidden"))) void gw_dlsym_find(void) {
  gw_dlsym_real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
}

/* The recorded function of a name, NULL where the library that is asked has no such function of the MPI library. */
__attribute__((visibility("hidden"))) void *gw_dlsym_recorded(void *handle, const char *name) {
  void *(*real)(void *, const char *) = (void *(*)(void *, const char *))gw_dlsym_real;
  if (strncmp(name, "MPI_", 4) || handle == RTLD_NEXT || handle == RTLD_DEFAULT) return NULL;
  void *library = dlopen(GW_MPI_LIBRARY, RTLD_LAZY | RTLD_NOLOAD), *own = real(RTLD_DEFAULT, name);
  void *found = library && own ? real(library, name) : NULL;
  if (library) dlclose(library);
  return found && real(handle, name) == found ? own : NULL;
}

/* What stands behind RTLD_NEXT depends on who calls: the library's own dlsym is entered by a jump. */
__asm__(".text\n.globl dlsym\n.type dlsym,@function\ndlsym:\n"
        "cmpq $0, gw_dlsym_real(%rip)\njne 1f\n"
        "pushq %rdi\npushq %rsi\nsubq $8, %rsp\ncall gw_dlsym_find\naddq $8, %rsp\npopq %rsi\npopq %rdi\n"
        "1: cmpb $'M', (%rsi)\njne 2f\ncmpb $'P', 1(%rsi)\njne 2f\n"
        "pushq %rdi\npushq %rsi\nsubq $8, %rsp\ncall gw_dlsym_recorded\naddq $8, %rsp\npopq %rsi\npopq %rdi\n"
        "testq %rax, %rax\njne 3f\n"
        "2: jmp *gw_dlsym_real(%rip)\n"
        "3: ret\n.size dlsym, .-dlsym\n");
#endif
