/* Python programs: the function and line of Python that a thread is in, for calls and for samples.

   The frames are read from the interpreter's memory. CPython 3.13 and later say themselves where things stand there
   (_Py_DebugOffsets, made for profilers); the layouts of 3.11 and 3.12 are written down here. Nothing is called that could
   allocate or take a lock. Where a sample stopped the interpreter its structures may be in the making: then memory is read
   by a system call, which fails where there is none. What is read counts only if its types are those of a code object and
   its text. */
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

#define LARGEST 320       /* bytes of a code object before its bytecode, at the most */
#define FRAME 80          /* bytes of a frame before what it computes with */
#define TEXT_HEAD 80      /* bytes of a text, or of bytes, before what they hold */

/* Where things stand: in any object, a thread's state, a frame, a code object, bytes, and a text. */
static struct layout {
  int type;
  int state_frame, through; /* 3.11 and 3.12: by way of a structure on the stack */
  int frame_code, frame_previous, frame_instruction;
  int code_file, code_name, code_first_line, code_lines, code_bytecode;
  int bytes_size, bytes_data;
  int text_size, text_state, text_ascii;
} layout;

static const struct layout before_offsets[] = {
    {8, 56, 8, 32, 48, 56, 112, 128, 72, 136, 184, 16, 32, 16, 32, 48},
    {8, 56, 0, 0, 8, 56, 112, 128, 68, 136, 192, 16, 32, 16, 32, 40},
};
#define FIRST_LAYOUT 11 /* of CPython 3.11 */

/* Which of the numbers of _Py_DebugOffsets, behind its cookie, are wanted. */
static const struct offsets {
  int state_frame, frame_previous, frame_code, frame_instruction;
  int code_file, code_name, code_lines, code_first_line, code_bytecode;
  int type, bytes_size, bytes_data, text_state, text_size, text_ascii;
} offsets[] = {
    {22, 28, 29, 30, 34, 35, 37, 38, 42, 44, 64, 65, 67, 68, 69},
    {25, 31, 32, 33, 39, 40, 42, 43, 47, 50, 74, 75, 77, 78, 79},
};
#define FIRST_OFFSETS 13 /* of CPython 3.13 */
enum { VERSION, FREE_THREADED, NUMBERS = 80 };

static struct place {
  uintptr_t code, name;
  uint32_t at, number; /* of the instruction in the code */
  int own;             /* whether it is the program's, and no library's */
} *places;
static void *(*this_state)(void);
static int (*is_ending)(void);
static uintptr_t code_type, text_type, bytes_type;
static unsigned last_number;
static char table_lock;
static const void *interpreter; /* where its code begins */

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
  char head[TEXT_HEAD], raw[TEXT];
  if (!peek(head, object, (size_t)layout.text_state + 8, safely) || word(head, layout.type) != text_type) return 0;
  size_t length = word(head, layout.text_size), at = 0;
  unsigned state = (unsigned char)head[layout.text_state], width = state >> 2 & 7, ascii = state >> 6 & 1;
  if (!(state & 32) || (width != 1 && width != 2 && width != 4)) return 0;
  if (length * width > sizeof raw) length = sizeof raw / width;
  uintptr_t data = object + (size_t)layout.text_ascii + (ascii ? 0 : 2 * sizeof(void *));
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
  char head[TEXT_HEAD];
  int first, line;
  memcpy(&first, code + layout.code_first_line, sizeof first);
  uintptr_t object = word(code, layout.code_lines);
  if (!peek(head, object, (size_t)layout.bytes_data, safely) || word(head, layout.type) != bytes_type) return first;
  size_t size = word(head, layout.bytes_size);
  if (size > sizeof table) size = sizeof table;
  if (!peek(table, object + (size_t)layout.bytes_data, size, safely)) return first;
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

/* The place that a frame is at, written down when it is first seen; NULL for what has no code object. */
static const struct place *place_of(const char *frame, int safely) {
  char code[LARGEST], name[4 * TEXT + 1], file[4 * TEXT + 1];
  uintptr_t address = word(frame, layout.frame_code) & ~(uintptr_t)7; /* without the tags of a reference */
  if (!peek(code, address, (size_t)layout.code_bytecode, safely) || word(code, layout.type) != code_type) return NULL;
  uint32_t at = (uint32_t)(word(frame, layout.frame_instruction) - address - (unsigned)layout.code_bytecode);
  uintptr_t key = word(code, layout.code_name);
  size_t spot = (size_t)((address + at * 8 + key) * 0x9e3779b97f4a7c15u >> 40);
  for (unsigned tries = 0; tries < 64; tries++) {
    struct place *p = &places[(spot + tries) & (ROOM - 1)];
    if (p->code == address && p->at == at && p->name == key) return p;
    if (p->code) continue;
    if (!read_text(name, key, safely) || !read_text(file, word(code, layout.code_file), safely)) return NULL;
    *p = (struct place){address, key, at, ++last_number, is_own(file)};
    gw_tell("python %u %d %s %s", p->number, line_of(code, at, safely), name, file);
    return p;
  }
  return NULL;
}

uint64_t gw_python(uint64_t *innermost, int safely) {
  if (!places) return 0;
  safely |= !is_ending || is_ending(); /* then states of threads may be gone already */
  char *state = this_state();
  uintptr_t frame = 0;
  if (!state || !peek(&frame, (uintptr_t)state + (unsigned)layout.state_frame, sizeof frame, safely)) return 0;
  if (layout.through >= 0 && !peek(&frame, frame + (unsigned)layout.through, sizeof frame, safely)) return 0;
  uint64_t inner = 0, own = 0;
  while (__atomic_test_and_set(&table_lock, __ATOMIC_ACQUIRE)) {
  }
  for (int depth = 0; frame && depth < DEEPEST && !own; depth++) {
    char head[FRAME];
    if (!peek(head, frame, sizeof head, safely)) break;
    const struct place *p = place_of(head, safely);
    frame = word(head, layout.frame_previous);
    if (!p) continue; /* a frame of the interpreter's own */
    if (!inner) inner = GW_PYTHON | p->number;
    if (p->own) own = GW_PYTHON | p->number;
  }
  __atomic_clear(&table_lock, __ATOMIC_RELEASE);
  if (innermost) *innermost = inner;
  return own ? own : inner;
}

int gw_is_interpreter(const void *caller) {
  Dl_info of;
  return interpreter && dladdr(caller, &of) && of.dli_fbase == interpreter;
}

void gw_python_part(void) { __atomic_clear(&table_lock, __ATOMIC_RELEASE); }

/* Take the layout from what the interpreter says of itself; 0 where it says something that can't be. Without the GIL each
   thread runs a copy of the bytecode, and objects look otherwise: there no lines are read. */
static int read_offsets(const struct offsets *at, unsigned long version) {
  const char *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
  uint64_t numbers[NUMBERS];
  if (!runtime || memcmp(runtime, "xdebugpy", 8)) return 0;
  memcpy(numbers, runtime + 8, sizeof numbers);
  if (numbers[VERSION] != version || numbers[FREE_THREADED]) return 0;
#define NUMBER(name) .name = (int)numbers[at->name]
  layout = (struct layout){
      NUMBER(type), NUMBER(state_frame), .through = -1, NUMBER(frame_code), NUMBER(frame_previous),
      NUMBER(frame_instruction), NUMBER(code_file), NUMBER(code_name), NUMBER(code_first_line), NUMBER(code_lines),
      NUMBER(code_bytecode), NUMBER(bytes_size), NUMBER(bytes_data), NUMBER(text_size), NUMBER(text_state),
      NUMBER(text_ascii),
  };
#undef NUMBER
  return layout.code_bytecode <= LARGEST && layout.frame_instruction <= FRAME - 8 && layout.text_state <= TEXT_HEAD - 8 &&
         layout.bytes_data <= TEXT_HEAD;
}

static int find_layout(unsigned long version) {
  unsigned minor = version >> 16 & 255;
  if (version >> 24 != 3 || minor < FIRST_LAYOUT) return 0;
  if (minor >= FIRST_OFFSETS)
    return minor - FIRST_OFFSETS < sizeof offsets / sizeof *offsets && read_offsets(&offsets[minor - FIRST_OFFSETS], version);
  layout = before_offsets[minor - FIRST_LAYOUT];
  return 1;
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
  char probe; /* whether memory may be read by a system call */
  int found = find_layout(*version) && this_state && code_type && peek(&probe, (uintptr_t)version, 1, 1);
  gw_tell("interpreter Python %lu.%lu %s", *version >> 24, *version >> 16 & 255, found ? "lines" : "no-lines");
  if (!found) return;
  places = calloc(ROOM, sizeof *places);
  Dl_info of;
  if (dladdr(version, &of)) interpreter = of.dli_fbase;
}
