"""Writes two judges of random weights that vLLM can serve on a processor: `tiny-judges.py FOLDER`.

`FOLDER/tiny-embedder` gives vectors, `FOLDER/tiny-nli` says of a pair of texts whether the second follows from the first.
Both are RoBERTas with RoBERTa's way of joining a pair; what they say is noise. Nothing is downloaded.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForSequenceClassification, RobertaModel

CONTEXT_TOKENS = 512
VOCABULARY_TOKENS = 512
SEED = 0

# Their numbers are their places, as in RoBERTa's vocabulary.
OPENING, PADDING, SEPARATOR, UNKNOWN, MASK = SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]

# In the order of RoBERTa-large-MNLI.
LABELS = ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"]

CORPUS = ["The quick brown fox jumps over the lazy dog. Marie Curie was born in Warsaw."] * 4


def tokenizer():
    """Byte-level BPE: every text can be written, whatever bytes it has."""
    bpe = Tokenizer(models.BPE(unk_token=UNKNOWN))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY_TOKENS,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    bpe.post_processor = processors.RobertaProcessing(
        (SEPARATOR, SPECIAL.index(SEPARATOR)), (OPENING, SPECIAL.index(OPENING)), add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=OPENING,
        cls_token=OPENING,
        eos_token=SEPARATOR,
        sep_token=SEPARATOR,
        unk_token=UNKNOWN,
        pad_token=PADDING,
        mask_token=MASK,
        model_max_length=CONTEXT_TOKENS,
    )


def config(words, **more):
    """Two small layers. RoBERTa counts positions from the padding's number on, hence two more than tokens."""
    return RobertaConfig(
        vocab_size=len(words),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=CONTEXT_TOKENS + 2,
        type_vocab_size=1,
        pad_token_id=words.pad_token_id,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        **more,
    )


def classifier(words):
    """Weights of the usual size say nearly the same of every class: wider ones tell them apart."""
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {label: at for at, label in enumerate(LABELS)}}
    nli = RobertaForSequenceClassification(config(words, num_labels=len(LABELS), **labels))
    with torch.no_grad():
        nli.classifier.out_proj.weight.mul_(40)
    return nli


def main(folder):
    words = tokenizer()
    torch.manual_seed(SEED)
    judges = {"tiny-embedder": RobertaModel(config(words), add_pooling_layer=False), "tiny-nli": classifier(words)}
    for name, judge in judges.items():
        judge.save_pretrained(os.path.join(folder, name))
        words.save_pretrained(os.path.join(folder, name))


if __name__ == "__main__":
    main(sys.argv[1])
