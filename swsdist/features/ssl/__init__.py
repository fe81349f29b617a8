"""Speech encoders that the library transformers loads, self-supervised and others: layers, or a CTC head, as frames.

Models are wav2vec 2.0 (Baevski et al., 2020), XLS-R, HuBERT (Hsu et al., 2021), WavLM (Chen et al., 2022), data2vec
(Baevski et al., 2022), UniSpeech, wav2vec 2.0 Conformer, w2v-BERT 2.0, and the encoder of Whisper (Radford et al.,
2023). A model is a folder on disk; nothing is fetched. torch and transformers (the extra `ssl`) are loaded where frames
are computed, not where a config is read.
"""
