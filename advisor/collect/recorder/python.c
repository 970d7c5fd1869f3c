/* Python programs: the function and line of Python that a thread is in, for calls and for samples.

   The frames are read from the interpreter's memory, of which CPython 3.11, 3.12 and 3.13 each have a layout of their
   own; nothing is called that could allocate or take a lock. Where a sample stopped the interpreter its structures may be
   in the making: then memory is read by a system call, which fails where there is none. What is read counts only if its
   types are those of a code object and its text. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM (1u << 15)   /* of the table of places */
#define DEEPEST 64        /* frames looked at */
#define TEXT 512
#define LINES 8192        /* bytes of a table of lines */

/* Where things stand: in a thread's state, a frame, a code object, and a text. */
static const struct layout {
  unsigned version;
  int state_frame, through, frame_code, frame_previous, frame_instruction;
  int code_first_line, code_bytecode, text_ascii, text_other;
} layouts[] = {
    {0x030b, 56, 8, 32, 48, 56, 72, 184, 48, 72}, /* by way of a structure on the stack */
    {0x030c, 56, 0, 0, 8, 56, 68, 192, 40, 56},
    {0x030d, 72, -1, 0, 8, 56, 68, 200, 40, 56},
};
enum { CODE_FILE = 112, CODE_NAME = 128, CODE_LINES = 136, BYTES_SIZE = 16, BYTES = 32, TEXT_SIZE = 16, TEXT_STATE = 32 };

static struct place {
  uintptr_t code, name;
  uint32_t at, number; /* of the instruction in the code */
  int own;             /* whether it is the program's, and no library's */
} *places;
static const struct layout *layout;
static void *(*this_state)(void);
static int (*is_ending)(void);
static uintptr_t code_type, text_type, bytes_type;
static unsigned last_number;
static char table_lock;

static int peek(void *to, uintptr_t from, size_t size, int safely) {
  if (!from) return 0;
  if (!safely) {
    memcpy(to, (const void *)from, size);
    return 1;
  }
  struct iovec here = {to, size}, there = {(void *)from, size};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

static uintptr_t word(const char *object, int offset) {
  uintptr_t value;
  memcpy(&value, object + offset, sizeof value);
  return value;
}

/* Copy a text; what is no plain character becomes an escape of the process file. */
static int read_text(char *to, uintptr_t object, int safely) {
  char head[80], raw[TEXT];
  if (!peek(head, object, 40, safely) || word(head, 8) != text_type) return 0;
  size_t length = word(head, TEXT_SIZE), at = 0;
  unsigned state = (unsigned char)head[TEXT_STATE], width = state >> 2 & 7, ascii = state >> 6 & 1;
  if (!(state & 32) || (width != 1 && width != 2 && width != 4)) return 0;
  if (length * width > sizeof raw) length = sizeof raw / width;
  uintptr_t data = object + (size_t)(ascii ? layout->text_ascii : layout->text_other);
  if (length && !peek(raw, data, length * width, safely)) return 0;
  for (size_t i = 0; i < length; i++) {
    unsigned c = (unsigned char)raw[i * width];
    for (unsigned k = 1; k < width; k++) c |= (unsigned char)raw[i * width + k] ? 0x100u : 0;
    static const char digits[] = "0123456789abcdef";
    if (c > 32 && c < 127 && c != '\\') to[at++] = (char)c;
    else {
      if (c > 255 || c > 126) c = '?';
      memcpy(to + at, "\\x", 2);
      to[at + 2] = digits[c >> 4];
      to[at + 3] = digits[c & 15];
      at += 4;
    }
  }
  to[at] = 0;
  return at > 0;
}

static int read_number(const unsigned char *from, size_t size, size_t *at) {
  unsigned value = 0;
  for (int shift = 0; *at < size && shift < 30; shift += 6) {
    unsigned byte = from[(*at)++];
    value |= (byte & 63) << shift;
    if (!(byte & 64)) break;
  }
  return (int)value;
}

/* The line of an instruction, by the table of locations of a code object (CPython's InternalDocs/code_objects.md). */
static int line_of(const char *code, uint32_t instruction, int safely) {
  static unsigned char table[LINES]; /* used by one thread at a time */
  char head[32];
  int first, line;
  memcpy(&first, code + layout->code_first_line, sizeof first);
  uintptr_t object = word(code, CODE_LINES);
  if (!peek(head, object, sizeof head, safely) || word(head, 8) != bytes_type) return first;
  size_t size = word(head, BYTES_SIZE);
  if (size > sizeof table) size = sizeof table;
  if (!peek(table, object + BYTES, size, safely)) return first;
  uint32_t end = 0;
  line = first;
  for (size_t at = 0; at < size;) {
    unsigned entry = table[at++], kind = entry >> 3 & 15;
    int change = 0;
    if (kind == 13 || kind == 14) {
      int number = read_number(table, size, &at);
      change = number & 1 ? -(number >> 1) : number >> 1;
    } else if (kind >= 10 && kind < 13) change = (int)kind - 10;
    line += change;
    end += 2 * ((entry & 7) + 1);
    if (instruction < end) return kind == 15 ? first : line;
    while (at < size && !(table[at] & 128)) at++;
  }
  return line;
}

static int is_own(const char *file) {
  return file[0] != '<' && !strstr(file, "/lib/python3") && !strstr(file, "/site-packages/") &&
         !strstr(file, "/dist-packages/");
}

/* The place of an instruction, written down when it is first seen; NULL for what is no code object. */
static const struct place *place_of(uintptr_t address, uintptr_t instruction, int safely) {
  char code[208], name[4 * TEXT + 1], file[4 * TEXT + 1];
  if (!peek(code, address, sizeof code, safely) || word(code, 8) != code_type) return NULL;
  uint32_t at = (uint32_t)(instruction - address - (unsigned)layout->code_bytecode);
  uintptr_t key = word(code, CODE_NAME);
  size_t spot = (size_t)((address + at * 8 + key) * 0x9e3779b97f4a7c15u >> 40);
  for (unsigned tries = 0; tries < 64; tries++) {
    struct place *p = &places[(spot + tries) & (ROOM - 1)];
    if (p->code == address && p->at == at && p->name == key) return p;
    if (p->code) continue;
    if (!read_text(name, key, safely) || !read_text(file, word(code, CODE_FILE), safely)) return NULL;
    *p = (struct place){address, key, at, ++last_number, is_own(file)};
    gw_tell("python %u %d %s %s", p->number, line_of(code, at, safely), name, file);
    return p;
  }
  return NULL;
}

uint64_t gw_python(uint64_t *innermost, int safely) {
  if (!layout) return 0;
  safely |= !is_ending || is_ending(); /* then states of threads may be gone already */
  char *state = this_state();
  uintptr_t frame = 0;
  if (!state || !peek(&frame, (uintptr_t)state + (unsigned)layout->state_frame, sizeof frame, safely)) return 0;
  if (layout->through >= 0 && !peek(&frame, frame + (unsigned)layout->through, sizeof frame, safely)) return 0;
  uint64_t inner = 0, own = 0;
  while (__atomic_test_and_set(&table_lock, __ATOMIC_ACQUIRE)) {
  }
  for (int depth = 0; frame && depth < DEEPEST && !own; depth++) {
    char head[64];
    if (!peek(head, frame, sizeof head, safely)) break;
    const struct place *p = place_of(word(head, layout->frame_code), word(head, layout->frame_instruction), safely);
    frame = word(head, layout->frame_previous);
    if (!p) continue; /* a frame of the interpreter's own */
    if (!inner) inner = GW_PYTHON | p->number;
    if (p->own) own = GW_PYTHON | p->number;
  }
  __atomic_clear(&table_lock, __ATOMIC_RELEASE);
  if (innermost) *innermost = inner;
  return own ? own : inner;
}

void gw_python_prepare(void) {
  const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version");
  if (!version) return;
  this_state = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  is_ending = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
  if (!is_ending) is_ending = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
  code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
  text_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
  bytes_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyBytes_Type");
  const struct layout *found = NULL;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    if (layouts[i].version == *version >> 16) found = &layouts[i];
  gw_tell("interpreter Python %lu.%lu %s", *version >> 24, *version >> 16 & 255, found ? "lines" : "no-lines");
  char probe;
  if (!found || !this_state || !code_type || !peek(&probe, (uintptr_t)version, 1, 1)) return;
  places = calloc(ROOM, sizeof *places);
  if (places) layout = found;
}
