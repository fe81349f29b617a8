/* Speaks lines of text by flite and says when.

   Standard input: a line is `VOICE TEXT`. Standard output, for each line: `RATE SAMPLES PHONES WORDS`, a line `NAME END` a phone, a line `NAME
   FIRST LAST` a word with the numbers of its first and last phone, and the samples, 16 bit. END is seconds. */

#include <stdio.h>
#include <string.h>

#include <flite/flite.h>

cst_voice *register_cmu_us_kal16(const char *voxdir);
cst_voice *register_cmu_us_awb(const char *voxdir);
cst_voice *register_cmu_us_rms(const char *voxdir);
cst_voice *register_cmu_us_slt(const char *voxdir);

static int place(cst_item *segment) { return item_feat_int(item_as(segment, "Segment"), "place"); }

static int length(cst_utterance *utterance, const char *relation)
{
    cst_item *item;
    int count = 0;

    for (item = relation_head(utt_relation(utterance, relation)); item; item = item_next(item))
        count++;
    return count;
}

int main(void)
{
    static const char *names[] = {"kal16", "awb", "rms", "slt"};
    cst_voice *voices[4];
    char line[65536];

    flite_init();
    voices[0] = register_cmu_us_kal16(NULL);
    voices[1] = register_cmu_us_awb(NULL);
    voices[2] = register_cmu_us_rms(NULL);
    voices[3] = register_cmu_us_slt(NULL);
    while (fgets(line, sizeof line, stdin)) {
        char *text = strchr(line, ' ');
        cst_utterance *utterance;
        cst_wave *wave;
        cst_item *item;
        int which = 0, count = 0;

        if (!text)
            return 1;
        *text++ = 0;
        text[strcspn(text, "\n")] = 0;
        while (which < 4 && strcmp(names[which], line))
            which++;
        if (which == 4 || !(utterance = flite_synth_text(text, voices[which])))
            return 2;
        wave = utt_wave(utterance);
        printf("%d %d %d %d\n", wave->sample_rate, wave->num_samples, length(utterance, "Segment"), length(utterance, "Word"));
        for (item = relation_head(utt_relation(utterance, "Segment")); item; item = item_next(item)) {
            item_set_int(item, "place", count++);
            printf("%s %.6f\n", item_name(item), item_feat_float(item, "end"));
        }
        for (item = relation_head(utt_relation(utterance, "Word")); item; item = item_next(item)) {
            cst_item *first = item_daughter(item_as(item, "SylStructure"));
            cst_item *last = item_last_daughter(item_as(item, "SylStructure"));
            printf("%s %d %d\n", item_name(item), place(item_daughter(first)), place(item_last_daughter(last)));
        }
        fwrite(wave->samples, sizeof(short), wave->num_samples, stdout);
        fflush(stdout);
        delete_utterance(utterance);
    }
    return 0;
}
