/* Entry points of Fortran's bindings: note where the program called them, and go on to the library's own.
   The bindings call the C functions, which are recorded; without this every call would come from the binding. */
#include "recorder.h"

#if defined __x86_64__ && defined GW_FORTRAN_BINDINGS

#define BINDING(number, name)                                                                                        \
  __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"                                         \
          "movq gw_fortran_real+8*" #number "(%rip), %r11\n"                                                         \
          "testq %r11, %r11\njz 1f\n"                                                                                \
          "2: movq (%rsp), %rax\n"                                                                                   \
          "movq gw_fortran_caller@gottpoff(%rip), %r10\n"                                                            \
          "movq %rax, %fs:(%r10)\n"                                                                                  \
          "jmp *%r11\n"                                                                                              \
          "1: pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\nsubq $8, %rsp\n"                 \
          "movl $" #number ", %edi\ncall gw_fortran_find@PLT\nmovq %rax, %r11\n"                                     \
          "addq $8, %rsp\npopq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\njmp 2b\n"                  \
          ".size " #name ", .-" #name "\n");
GW_FORTRAN_BINDINGS
#undef BINDING

#define BINDING(number, name) #name,
static const char *const bindings[] = {GW_FORTRAN_BINDINGS};
__attribute__((visibility("hidden"))) void *gw_fortran_real[sizeof bindings / sizeof *bindings];

__attribute__((visibility("hidden"))) void *gw_fortran_find(int number) {
  return gw_fortran_real[number] = gw_resolve(bindings[number]);
}
#endif
