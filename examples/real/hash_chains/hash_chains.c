/* Words are counted in a hash table whose entries are allocated one by one and linked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 1 << 20, LOOKUPS = 6 << 20, BUCKETS = 1 << 18, SLOTS = 1 << 22 };

static uint32_t next_key(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 40) % KEYS + 1;
}

#ifdef REPAIRED
struct slot {
    uint32_t key; /* 0: free */
    uint32_t count;
};

static struct slot *table;

static struct slot *find(uint32_t key)
{
    uint32_t at = key * 2654435761u & (SLOTS - 1);
    while (table[at].key && table[at].key != key)
        at = (at + 1) & (SLOTS - 1);
    return &table[at];
}

static void prepare(void)
{
    table = calloc(SLOTS, sizeof *table);
}

static void insert(uint32_t key)
{
    struct slot *slot = find(key);
    slot->key = key;
}
#else
struct entry {
    struct entry *next;
    uint32_t key;
    uint32_t count;
};

static struct entry **table;

static struct entry *find(uint32_t key)
{
    struct entry *entry = table[key * 2654435761u & (BUCKETS - 1)];
    while (entry && entry->key != key)
        entry = entry->next;
    return entry;
}

static void prepare(void)
{
    table = calloc(BUCKETS, sizeof *table);
}

static void insert(uint32_t key)
{
    struct entry **bucket = &table[key * 2654435761u & (BUCKETS - 1)];
    struct entry *entry = malloc(sizeof *entry);
    *entry = (struct entry){*bucket, key, 0};
    *bucket = entry;
}
#endif

int main(void)
{
    uint64_t state = 1;
    prepare();
    for (uint32_t i = 0; i < KEYS; i++)
        insert((uint32_t)((uint64_t)i * 2654435761u % KEYS) + 1);
    for (long i = 0; i < LOOKUPS; i++)
        find(next_key(&state))->count++;
    printf("%u\n", find(7)->count);
}
