"""Writes a chat model of random weights that vLLM can serve on a processor: `tiny-model.py FOLDER`.

Its answers are garbage, which is the point: everything but the answers is real. Nothing is downloaded. The context has
32 768 positions, because the longest prompts of the benchmark have some 15 000 characters, a small vocabulary makes
a token of every two or three of them, and the conversation so far is sent again in every round.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTEXT_TOKENS = 32_768
VOCABULARY_TOKENS = 500
SEED = 7

START, TURN, END, PADDING = "<|start|>", "<|turn|>", "<|end|>", "<|padding|>"

# One line per turn with its role, as most chat models have it.
CHAT_TEMPLATE = (
    START
    + "{% for message in messages %}"
    + TURN
    + "{{ message['role'] }}\n{{ message['content'] }}"
    + END
    + "\n{% endfor %}{% if add_generation_prompt %}"
    + TURN
    + "assistant\n{% endif %}"
)

# What the tokenizer learns its longer tokens from: words and punctuation that prompts about graphs are full of.
CORPUS = [
    "The following question is about the knowledge graph below; please answer with a single query and nothing else.",
    "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>",
    "SELECT DISTINCT ?person ?name WHERE { ?person a foaf:Person ; foaf:name ?name . FILTER(?name != '') } LIMIT 10",
    "@prefix ex: <https://example.org/resource/> .\nex:node0123 ex:knows ex:node4567 , ex:node89 ; rdfs:label \"node\" .",
    '{"@id": "https://example.org/resource/node", "@type": "Person", "http://www.w3.org/2000/01/rdf-schema#label": []}',
    "Your answer has a syntax error. Please correct the graph and write it again, in a code block and in full.",
]


def tokenizer():
    """Byte-level BPE: every text can be written, whatever bytes it has."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY_TOKENS,
            special_tokens=[START, TURN, END, PADDING],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=START, eos_token=END, pad_token=PADDING, model_max_length=CONTEXT_TOKENS
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def model(words):
    """Two layers of random weights: as little arithmetic as a Llama can have with heads of a usual size."""
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    return LlamaForCausalLM(config).to(torch.bfloat16)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = sys.argv[1]
    words = tokenizer()
    llama = model(words)
    words.save_pretrained(folder)
    llama.save_pretrained(folder)
    print(f"{folder}: {llama.num_parameters()} parameters, {len(words)} tokens, context of {CONTEXT_TOKENS}")


if __name__ == "__main__":
    main()
