"""Models of installed libraries: their constructors and their inputs.

A case is a function of the module `torch` (torch or this project). It returns a module and its inputs as numpy arrays.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Case = Callable[[Any], tuple[Any, list[Any]]]
CASES: dict[str, Case] = {}


def images(batch: int = 2, size: int = 64) -> Any:
    return np.random.RandomState(1).randn(batch, 3, size, size)


def tokens(batch: int = 2, length: int = 32) -> Any:
    return np.random.RandomState(2).randint(0, 100, (batch, length))


def vectors(*shape: int) -> Any:
    return np.random.RandomState(3).randn(*shape)


def _add(library: str, name: str, path: str, inputs: list[Any], *args: Any, **kwargs: Any) -> None:
    """Model `path` ("module.Class") of `library`, made with these arguments."""

    def build(torch: Any) -> tuple[Any, list[Any]]:
        module, _, cls = path.rpartition(".")
        return getattr(importlib.import_module(module), cls)(*args, **kwargs), inputs

    CASES[f"{library}/{name}"] = build


_VIT = {"image_size": 64, "patch_size": 16, "num_classes": 10, "dim": 64, "depth": 2, "heads": 4, "mlp_dim": 128}
_add("vit_pytorch", "vit", "vit_pytorch.ViT", [images()], **_VIT)
_add("vit_pytorch", "simple_vit", "vit_pytorch.SimpleViT", [images()], **_VIT)
_add("vit_pytorch", "cait", "vit_pytorch.cait.CaiT", [images()], cls_depth=1, **_VIT)
_add("vit_pytorch", "xcit", "vit_pytorch.xcit.XCiT", [images()], cls_depth=1, **_VIT)
_add("vit_pytorch", "levit", "vit_pytorch.levit.LeViT", [images()], image_size=64, num_classes=10, stages=2, dim=(32, 64), depth=1,
     heads=(2, 4), mlp_mult=2)  # fmt: skip
_add("vit_pytorch", "pit", "vit_pytorch.pit.PiT", [images()], image_size=64, patch_size=8, dim=32, num_classes=10, depth=(1, 1),
     heads=2, mlp_dim=64)  # fmt: skip
_add("vit_pytorch", "nest", "vit_pytorch.nest.NesT", [images()], image_size=64, patch_size=4, dim=16, heads=2, num_hierarchies=2,
     block_repeats=(1, 1), num_classes=10)  # fmt: skip
_add("vit_pytorch", "max_vit", "vit_pytorch.max_vit.MaxViT", [images()], num_classes=10, dim_conv_stem=16, dim=16, dim_head=8,
     depth=(1, 1), window_size=4, mbconv_expansion_rate=2, mbconv_shrinkage_rate=0.25)  # fmt: skip
_add("vit_pytorch", "mobile_vit", "vit_pytorch.mobile_vit.MobileViT", [images()], image_size=(64, 64), dims=[32, 40, 48],
     channels=[8, 8, 16, 16, 24, 24, 32, 32, 40, 40, 64], num_classes=10)  # fmt: skip


def _x_transformer(name: str, kind: str, **options: Any) -> None:
    def build(torch: Any) -> tuple[Any, list[Any]]:
        library = importlib.import_module("x_transformers")
        layers = getattr(library, kind)(dim=64, depth=2, heads=4, **options)
        return library.TransformerWrapper(num_tokens=100, max_seq_len=64, attn_layers=layers), [tokens()]

    CASES[f"x_transformers/{name}"] = build


_x_transformer("rotary", "Decoder", rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True)
_x_transformer("alibi", "Encoder", alibi_pos_bias=True, attn_num_mem_kv=4)
_x_transformer("qk_norm", "Decoder", attn_qk_norm=True, rel_pos_bias=True, shift_tokens=1, sandwich_norm=True)
_x_transformer("flash", "Decoder", attn_flash=True, attn_kv_heads=2, macaron=True)
_add("linformer", "lm", "linformer.LinformerLM", [tokens()], num_tokens=100, dim=64, seq_len=32, depth=2, heads=4, k=16)
_add("nystrom_attention", "nystromformer", "nystrom_attention.Nystromformer", [vectors(2, 32, 64)], dim=64, dim_head=16, heads=4,
     depth=1, num_landmarks=8, pinv_iterations=4)  # fmt: skip
_add("perceiver_pytorch", "perceiver", "perceiver_pytorch.Perceiver", [vectors(2, 16, 16, 3)], input_channels=3, input_axis=2,
     num_freq_bands=4, max_freq=10.0, depth=2, num_latents=8, latent_dim=32, cross_heads=1, latent_heads=4, cross_dim_head=16,
     latent_dim_head=8, num_classes=10, weight_tie_layers=True)  # fmt: skip
_add("conformer", "conformer", "conformer.Conformer", [vectors(2, 32, 64)], dim=64, depth=1, dim_head=16, heads=4, ff_mult=2,
     conv_expansion_factor=2, conv_kernel_size=7)  # fmt: skip
_add("siren_pytorch", "siren", "siren_pytorch.SirenNet", [vectors(50, 2)], dim_in=2, dim_hidden=32, dim_out=3, num_layers=3)
_add("egnn_pytorch", "egnn", "egnn_pytorch.EGNN", [vectors(1, 12, 16), vectors(1, 12, 3)], dim=16, num_nearest_neighbors=4)
_add("g_mlp_pytorch", "gmlp", "g_mlp_pytorch.gMLP", [tokens()], num_tokens=100, dim=32, depth=2, seq_len=32)
_add("pytorch_tcn", "tcn", "pytorch_tcn.TCN", [vectors(2, 8, 20)], num_inputs=8, num_channels=[8, 16])


def _timm(name: str, size: int = 64, **options: Any) -> None:
    def build(torch: Any) -> tuple[Any, list[Any]]:
        return importlib.import_module("timm").create_model(name, num_classes=10, **options), [images(size=size)]

    CASES[f"timm/{name}"] = build


for _name in (
    "resnet18 resnetv2_50 seresnet18 mobilenetv3_small_050 convnext_atto efficientnet_lite0 regnetx_002 densenet121 ghostnet_050 "
    "mixnet_s dla34 hrnet_w18_small rexnet_100 repvgg_a0 fbnetc_100 edgenext_xx_small mobileone_s0 starnet_s1 fastvit_t8 "
    "inception_next_atto poolformer_s12 vovnet39a nfnet_f0 lcnet_050 mobilenetv4_conv_small pvt_v2_b0 davit_tiny mvitv2_tiny"
).split():
    _timm(_name)
for _name in "vit_tiny_patch16_224 deit_tiny_patch16_224 beit_base_patch16_224 swinv2_tiny_window8_256 mixer_s16_224".split():
    _timm(_name, img_size=64)
_timm("eva02_tiny_patch14_224", 56, img_size=56)


def _transformers(name: str, inputs: list[Any] | None = None, **options: Any) -> None:
    def build(torch: Any) -> tuple[Any, list[Any]]:
        library = importlib.import_module("transformers")
        model = getattr(library, name)
        return model(model.config_class(**options)), inputs or [tokens()]

    CASES[f"transformers/{name}"] = build


_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 100}
for _name in (
    "BertModel RobertaModel ElectraModel AlbertModel MPNetModel DebertaV2Model FalconForCausalLM GPTNeoXForCausalLM OPTForCausalLM "
    "MambaForCausalLM MegatronBertModel NystromformerModel RoFormerModel"
).split():
    _transformers(_name, **_SMALL)
for _name in (
    "LlamaForCausalLM MistralForCausalLM Qwen2ForCausalLM GemmaForCausalLM PhiForCausalLM Olmo2ForCausalLM StableLmForCausalLM"
).split():
    _transformers(_name, num_key_value_heads=2, head_dim=8, **_SMALL)
# torch's grouped products, which the experts are run by otherwise, refuse float64
_transformers("MixtralForCausalLM", num_key_value_heads=2, head_dim=8, experts_implementation="eager", **_SMALL)
_transformers("FlexOlmoForCausalLM", num_key_value_heads=2, num_experts=4, num_experts_per_tok=2, pad_token_id=0,
              experts_implementation="eager", **_SMALL)  # fmt: skip
_transformers("GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64)
_transformers("GPTNeoForCausalLM", hidden_size=32, num_layers=2, num_heads=4, intermediate_size=64, vocab_size=100, window_size=8,
              max_position_embeddings=64, attention_types=[[["global", "local"], 1]])  # fmt: skip
_transformers("DistilBertModel", dim=32, n_layers=2, n_heads=4, hidden_dim=64, vocab_size=100)
_transformers("T5ForConditionalGeneration", [tokens(), np.ones((2, 32), np.int64), tokens(2, 8)], d_model=32, d_kv=8, d_ff=64,
              num_layers=2, num_heads=4, vocab_size=100)  # fmt: skip
_transformers("ViTModel", [images()], image_size=64, **{k: v for k, v in _SMALL.items() if k != "vocab_size"})

_SAMPLES = {"sample_size": 16, "layers_per_block": 1, "norm_num_groups": 8}


def _diffusers(name: str, inputs: list[Any], *, argument: str | None = None, **options: Any) -> None:
    """A model of diffusers: on a sample and a time, its first result."""

    def build(torch: Any) -> tuple[Any, list[Any]]:
        return getattr(importlib.import_module("diffusers"), name)(**options), inputs

    CASES[f"diffusers/{name}"] = build


_diffusers("UNet2DModel", [vectors(2, 3, 16, 16), np.array([3, 7])], block_out_channels=(16, 32), **_SAMPLES,
           down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))  # fmt: skip
_diffusers("UNet2DConditionModel", [vectors(2, 4, 16, 16), np.array([3, 7]), vectors(2, 5, 32)], block_out_channels=(16, 32), **_SAMPLES,
           down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
           cross_attention_dim=32, attention_head_dim=8)  # fmt: skip
_diffusers("VQModel", [images(1, 32)], block_out_channels=(16,), norm_num_groups=8, latent_channels=4)
_diffusers("DiTTransformer2DModel", [vectors(2, 4, 16, 16), np.array([3, 7]), np.array([1, 2])], num_attention_heads=2,
           attention_head_dim=16, num_layers=2, sample_size=16, num_embeds_ada_norm=10)  # fmt: skip
_add("monai", "unet", "monai.networks.nets.UNet", [vectors(1, 1, 32, 32)], spatial_dims=2, in_channels=1, out_channels=2,
     channels=(8, 16, 32), strides=(2, 2), num_res_units=1)  # fmt: skip
_add("monai", "unet_3d", "monai.networks.nets.UNet", [vectors(1, 1, 16, 16, 16)], spatial_dims=3, in_channels=1, out_channels=2,
     channels=(4, 8), strides=(2,))  # fmt: skip
_add("monai", "segresnet", "monai.networks.nets.SegResNet", [vectors(1, 1, 32, 32)], spatial_dims=2, init_filters=8)
_add("monai", "unetr", "monai.networks.nets.UNETR", [vectors(1, 1, 32, 32)], 1, 2, 32, feature_size=8, hidden_size=32, mlp_dim=64,
     num_heads=4, spatial_dims=2)  # fmt: skip
_add("monai", "dynunet", "monai.networks.nets.DynUNet", [vectors(1, 1, 32, 32)], 2, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2])
_add("monai", "densenet", "monai.networks.nets.DenseNet", [vectors(1, 1, 32, 32)], 2, 1, 2, init_features=8, growth_rate=4,
     block_config=(2, 2))  # fmt: skip
_add("monai", "attention_unet", "monai.networks.nets.AttentionUnet", [vectors(1, 1, 32, 32)], 2, 1, 2, channels=(8, 16), strides=(2,))
