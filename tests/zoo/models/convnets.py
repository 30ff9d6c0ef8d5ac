"""Image classifiers."""
import math
from collections import OrderedDict
from functools import partial
from typing import Any, Callable, List, Optional, Type, Union

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.case import Case


# --- residual networks ---------------------------------------------------------------------------
def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=dilation, groups=groups,
                     bias=False, dilation=dilation)


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, norm_layer: Optional[Callable[..., nn.Module]] = None):
        super().__init__()
        if norm_layer is None:
            norm_layer = nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion: int = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = norm_layer(planes)
        self.conv2 = conv3x3(planes, planes, stride)
        self.bn2 = norm_layer(planes)
        self.conv3 = nn.Conv2d(planes, planes * self.expansion, 1, bias=False)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        residual = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            residual = self.downsample(x)
        out += residual
        out = self.relu(out)
        return out


class ResNet(nn.Module):
    def __init__(self, block: Type[Union[BasicBlock, Bottleneck]], layers: List[int], num_classes: int = 10, width: int = 8):
        super(ResNet, self).__init__()
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, width, layers[0])
        self.layer2 = self._make_layer(block, width * 2, layers[1], stride=2)
        self.layer3 = self._make_layer(block, width * 4, layers[2], stride=2)
        self.layer4 = self._make_layer(block, width * 8, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width * 8 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes * block.expansion, 1, stride=stride, bias=False),
                nn.BatchNorm2d(planes * block.expansion),
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(block(self.inplanes, planes))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for name in ("layer1", "layer2", "layer3", "layer4"):
            x = getattr(self, name)(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.fc(x)


def cross_entropy(model, out, inputs):
    target = torch.arange(out.size(0)) % out.size(1)
    return F.cross_entropy(out, target)


def smoothed(model, out, inputs):
    return nn.CrossEntropyLoss(label_smoothing=0.1)(out, torch.arange(out.shape[0], device=out.device) % out.shape[-1])


# --- plain stacks --------------------------------------------------------------------------------
CONFIGURATION = [8, "M", 16, "M", 32, 32, "M"]


class VGG(nn.Module):
    def __init__(self, cfg, batch_norm=False, num_classes=10, dropout=0.0):
        super().__init__()
        layers, channels = [], 3
        for v in cfg:
            if v == "M":
                layers += [nn.MaxPool2d(kernel_size=2, stride=2)]
            else:
                conv = nn.Conv2d(channels, v, kernel_size=3, padding=1)
                layers += [conv, nn.BatchNorm2d(v), nn.ReLU(inplace=True)] if batch_norm else [conv, nn.ReLU(True)]
                channels = v
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((3, 3))
        self.classifier = nn.Sequential(
            nn.Linear(channels * 9, 64), nn.ReLU(True), nn.Dropout(p=dropout),
            nn.Linear(64, 64), nn.ReLU(True), nn.Dropout(p=dropout), nn.Linear(64, num_classes),
        )
        self._initialize_weights()

    def _initialize_weights(self):
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                n = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                m.weight.data.normal_(0, math.sqrt(2.0 / n))
                if m.bias is not None:
                    m.bias.data.zero_()
            elif isinstance(m, nn.BatchNorm2d):
                m.weight.data.fill_(1)
                m.bias.data.zero_()
            elif isinstance(m, nn.Linear):
                m.weight.data.normal_(0, 0.01)
                m.bias.data.zero_()

    def forward(self, x):
        x = self.avgpool(self.features(x))
        x = x.view(x.size(0), -1)
        return self.classifier(x)


class Fire(nn.Module):
    def __init__(self, inplanes, squeeze, expand1x1, expand3x3):
        super().__init__()
        self.squeeze = nn.Conv2d(inplanes, squeeze, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze, expand1x1, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze, expand3x3, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        return torch.cat([self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1)


class SqueezeNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, kernel_size=3, stride=2), nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(16, 4, 8, 8), Fire(16, 4, 8, 8),
            nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(16, 6, 12, 12),
        )
        final = nn.Conv2d(24, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(nn.Dropout(p=0.0), final, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, x):
        return torch.flatten(self.classifier(self.features(x)), 1)


# --- densely connected ---------------------------------------------------------------------------
class _DenseLayer(nn.Module):
    def __init__(self, num_input_features, growth_rate, bn_size, drop_rate):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, kernel_size=1, stride=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, kernel_size=3, stride=1, padding=1, bias=False)
        self.drop_rate = float(drop_rate)

    def forward(self, input):
        prev_features = [input] if isinstance(input, Tensor) else input
        concatenated = torch.cat(prev_features, 1)
        bottleneck = self.conv1(self.relu1(self.norm1(concatenated)))
        new = self.conv2(self.relu2(self.norm2(bottleneck)))
        if self.drop_rate > 0:
            new = F.dropout(new, p=self.drop_rate, training=self.training)
        return new


class _DenseBlock(nn.ModuleDict):
    def __init__(self, num_layers, num_input_features, bn_size, growth_rate, drop_rate):
        super().__init__()
        for i in range(num_layers):
            layer = _DenseLayer(num_input_features + i * growth_rate, growth_rate, bn_size, drop_rate)
            self.add_module("denselayer%d" % (i + 1), layer)

    def forward(self, init_features):
        features = [init_features]
        for name, layer in self.items():
            features.append(layer(features))
        return torch.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, stride=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    def __init__(self, growth_rate=4, block_config=(2, 3), num_init_features=8, bn_size=2, drop_rate=0, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(OrderedDict([
            ("conv0", nn.Conv2d(3, num_init_features, kernel_size=3, stride=2, padding=1, bias=False)),
            ("norm0", nn.BatchNorm2d(num_init_features)),
            ("relu0", nn.ReLU(inplace=True)),
            ("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1)),
        ]))
        num_features = num_init_features
        for i, num_layers in enumerate(block_config):
            block = _DenseBlock(num_layers, num_features, bn_size, growth_rate, drop_rate)
            self.features.add_module(f"denseblock{i + 1}", block)
            num_features = num_features + num_layers * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(num_features, num_features // 2))
                num_features = num_features // 2
        self.features.add_module("norm5", nn.BatchNorm2d(num_features))
        self.classifier = nn.Linear(num_features, num_classes)

    def forward(self, x):
        features = self.features(x)
        out = F.relu(features, inplace=True)
        out = F.adaptive_avg_pool2d(out, (1, 1))
        out = torch.flatten(out, 1)
        return self.classifier(out)


# --- mobile networks -----------------------------------------------------------------------------
def _make_divisible(v: float, divisor: int, min_value: Optional[int] = None) -> int:
    if min_value is None:
        min_value = divisor
    new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
    if new_v < 0.9 * v:
        new_v += divisor
    return new_v


class ConvNormActivation(nn.Sequential):
    def __init__(self, cin, cout, kernel_size=3, stride=1, groups=1, activation: Optional[Callable[..., nn.Module]] = nn.ReLU6):
        padding = (kernel_size - 1) // 2
        layers: List[nn.Module] = [
            nn.Conv2d(cin, cout, kernel_size, stride, padding, groups=groups, bias=False),
            nn.BatchNorm2d(cout, eps=1e-3, momentum=0.01),
        ]
        if activation is not None:
            layers.append(activation(inplace=True))
        super().__init__(*layers)
        self.out_channels = cout


class InvertedResidual(nn.Module):
    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int):
        super().__init__()
        assert stride in [1, 2], f"stride should be 1 or 2 instead of {stride}"
        hidden_dim = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        layers: List[nn.Module] = []
        if expand_ratio != 1:
            layers.append(ConvNormActivation(inp, hidden_dim, kernel_size=1))
        layers.extend([
            ConvNormActivation(hidden_dim, hidden_dim, stride=stride, groups=hidden_dim),
            nn.Conv2d(hidden_dim, oup, 1, 1, 0, bias=False),
            nn.BatchNorm2d(oup),
        ])
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        if self.use_res_connect:
            return x + self.conv(x)
        else:
            return self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, num_classes=10, width_mult=0.25, round_nearest=4, dropout=0.0):
        super().__init__()
        settings = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2]]
        channels = _make_divisible(32 * width_mult, round_nearest)
        features: List[nn.Module] = [ConvNormActivation(3, channels, stride=2)]
        for t, c, n, s in settings:
            out = _make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                features.append(InvertedResidual(channels, out, s if i == 0 else 1, expand_ratio=t))
                channels = out
        features.append(ConvNormActivation(channels, 32, kernel_size=1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(32, num_classes))

    def forward(self, x):
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1)).reshape(x.shape[0], -1)
        return self.classifier(x)


class SqueezeExcitation(nn.Module):
    def __init__(self, channels, squeezed, activation=nn.ReLU, scale=nn.Hardsigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)
        self.activation = activation()
        self.scale_activation = scale()

    def _scale(self, input: Tensor) -> Tensor:
        scale = self.avgpool(input)
        scale = self.activation(self.fc1(scale))
        return self.scale_activation(self.fc2(scale))

    def forward(self, input: Tensor) -> Tensor:
        scale = self._scale(input)
        return scale * input


class V3Block(nn.Module):
    def __init__(self, cin, expanded, cout, kernel, stride, use_se, activation):
        super().__init__()
        layers = [ConvNormActivation(cin, expanded, 1, activation=activation),
                  ConvNormActivation(expanded, expanded, kernel, stride, groups=expanded, activation=activation)]
        if use_se:
            layers.append(SqueezeExcitation(expanded, _make_divisible(expanded // 4, 4)))
        layers.append(ConvNormActivation(expanded, cout, 1, activation=None))
        self.block = nn.Sequential(*layers)
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        result = self.block(x)
        if self.residual:
            result += x
        return result


class MobileNetV3(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        table = [
            (8, 8, 8, 3, 2, True, nn.ReLU),
            (8, 16, 12, 3, 2, False, nn.ReLU),
            (12, 24, 12, 5, 1, True, nn.Hardswish),
        ]
        self.features = nn.Sequential(
            ConvNormActivation(3, 8, stride=2, activation=nn.Hardswish),
            *[V3Block(*row) for row in table],
            ConvNormActivation(12, 32, 1, activation=nn.Hardswish),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(32, 48), nn.Hardswish(inplace=True), nn.Dropout(0.0), nn.Linear(48, num_classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class StochasticDepth(nn.Module):
    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        noise = torch.empty(x.shape[0], *([1] * (x.ndim - 1)), dtype=x.dtype, device=x.device).bernoulli_(keep)
        if keep > 0.0:
            noise.div_(keep)
        return x * noise

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(p={self.p})"


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class MBConv(nn.Module):
    def __init__(self, cin, cout, expand, kernel, stride, se_ratio=0.25, drop=0.0):
        super().__init__()
        mid = cin * expand
        self._expand_conv = nn.Conv2d(cin, mid, 1, bias=False)
        self._bn0 = nn.BatchNorm2d(mid, momentum=0.01, eps=1e-3)
        self.kernel, self.stride = kernel, stride
        self._depthwise_conv = nn.Conv2d(mid, mid, kernel, stride=stride, groups=mid, bias=False)
        self._bn1 = nn.BatchNorm2d(mid, momentum=0.01, eps=1e-3)
        squeezed = max(1, int(cin * se_ratio))
        self._se_reduce = nn.Conv2d(mid, squeezed, 1)
        self._se_expand = nn.Conv2d(squeezed, mid, 1)
        self._project_conv = nn.Conv2d(mid, cout, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(cout, momentum=0.01, eps=1e-3)
        self.skip = stride == 1 and cin == cout
        self.drop = StochasticDepth(drop)

    def _same_padding(self, x):
        ih, iw = x.size()[-2:]
        k, s = self.kernel, self.stride
        oh, ow = math.ceil(ih / s), math.ceil(iw / s)
        ph, pw = max((oh - 1) * s + k - ih, 0), max((ow - 1) * s + k - iw, 0)
        if ph > 0 or pw > 0:
            x = F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2])
        return x

    def forward(self, inputs):
        x = F.silu(self._bn0(self._expand_conv(inputs)))
        x = F.silu(self._bn1(self._depthwise_conv(self._same_padding(x))))
        s = F.adaptive_avg_pool2d(x, 1)
        s = self._se_expand(F.silu(self._se_reduce(s)))
        x = torch.sigmoid(s) * x
        x = self._bn2(self._project_conv(x))
        if self.skip:
            x = self.drop(x) + inputs
        return x


class EfficientNet(nn.Module):
    def __init__(self, num_classes=10, drop=0.0):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.SiLU())
        self.blocks = nn.ModuleList([MBConv(8, 8, 4, 3, 1, drop=drop), MBConv(8, 12, 4, 5, 2), MBConv(12, 12, 4, 5, 1, drop=drop)])
        self.head = nn.Sequential(nn.Conv2d(12, 32, 1, bias=False), nn.BatchNorm2d(32), Swish())
        self.fc = nn.Linear(32, num_classes)

    def forward(self, x):
        x = self.stem(x)
        for idx, block in enumerate(self.blocks):
            x = block(x)
        return self.fc(self.head(x).mean([2, 3]))


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    batchsize, num_channels, height, width = x.size()
    channels_per_group = num_channels // groups
    x = x.view(batchsize, groups, channels_per_group, height, width)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(batchsize, num_channels, height, width)


class ShuffleUnit(nn.Module):
    def __init__(self, inp, oup, stride):
        super().__init__()
        if not (1 <= stride <= 3):
            raise ValueError("illegal stride value")
        self.stride = stride
        branch = oup // 2
        assert (self.stride != 1) or (inp == branch << 1)
        if self.stride > 1:
            self.branch1 = nn.Sequential(
                self.depthwise_conv(inp, inp, 3, stride, 1), nn.BatchNorm2d(inp),
                nn.Conv2d(inp, branch, 1, bias=False), nn.BatchNorm2d(branch), nn.ReLU(inplace=True),
            )
        else:
            self.branch1 = nn.Sequential()
        self.branch2 = nn.Sequential(
            nn.Conv2d(inp if self.stride > 1 else branch, branch, 1, bias=False), nn.BatchNorm2d(branch), nn.ReLU(inplace=True),
            self.depthwise_conv(branch, branch, 3, stride, 1), nn.BatchNorm2d(branch),
            nn.Conv2d(branch, branch, 1, bias=False), nn.BatchNorm2d(branch), nn.ReLU(inplace=True),
        )

    @staticmethod
    def depthwise_conv(i, o, kernel_size, stride=1, padding=0, bias=False):
        return nn.Conv2d(i, o, kernel_size, stride, padding, bias=bias, groups=i)

    def forward(self, x):
        if self.stride == 1:
            x1, x2 = x.chunk(2, dim=1)
            out = torch.cat((x1, self.branch2(x2)), dim=1)
        else:
            out = torch.cat((self.branch1(x), self.branch2(x)), dim=1)
        return channel_shuffle(out, 2)


class ShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        for i, (inp, oup, repeats) in enumerate(zip([8, 16], [16, 32], [2, 1])):
            seq = [ShuffleUnit(inp, oup, 2)]
            for _ in range(repeats - 1):
                seq.append(ShuffleUnit(oup, oup, 1))
            setattr(self, "stage{}".format(i + 2), nn.Sequential(*seq))
        self.fc = nn.Linear(32, 10)

    def _forward_impl(self, x):
        x = self.stage3(self.stage2(self.stem(x)))
        x = x.mean([2, 3])  # globalpool
        return self.fc(x)

    def forward(self, x):
        return self._forward_impl(x)


# --- after the transformers ----------------------------------------------------------------------
class LayerNorm2d(nn.LayerNorm):
    """Normalises the channels of (n, c, h, w)."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim, layer_scale_init_value=0.1):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(layer_scale_init_value * torch.ones((dim)), requires_grad=True) if layer_scale_init_value > 0 else None

    def forward(self, x):
        input = x
        x = self.dwconv(x)
        x = x.permute(0, 2, 3, 1)
        x = self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        if self.gamma is not None:
            x = self.gamma * x
        x = x.permute(0, 3, 1, 2)
        return input + x


class ConvNeXt(nn.Module):
    def __init__(self, depths=[1, 1], dims=[8, 16], num_classes=10):
        super().__init__()
        self.downsample_layers = nn.ModuleList()
        self.downsample_layers.append(nn.Sequential(nn.Conv2d(3, dims[0], kernel_size=4, stride=4), LayerNorm2d(dims[0], eps=1e-6)))
        self.downsample_layers.append(nn.Sequential(LayerNorm2d(dims[0], eps=1e-6), nn.Conv2d(dims[0], dims[1], 2, stride=2)))
        self.stages = nn.ModuleList()
        for i in range(2):
            self.stages.append(nn.Sequential(*[ConvNeXtBlock(dim=dims[i]) for j in range(depths[i])]))
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        self.head = nn.Linear(dims[-1], num_classes)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            nn.init.trunc_normal_(m.weight, std=0.02)
            nn.init.constant_(m.bias, 0)

    def forward_features(self, x):
        for i in range(2):
            x = self.downsample_layers[i](x)
            x = self.stages[i](x)
        return self.norm(x.mean([-2, -1]))

    def forward(self, x):
        return self.head(self.forward_features(x))


class InceptionBranch(nn.Module):
    """Four towers joined, with an auxiliary head while training."""

    def __init__(self, cin):
        super().__init__()
        conv_block = partial(self._conv, cin)
        self.branch1 = conv_block(4, 1)
        self.branch2 = nn.Sequential(conv_block(4, 1), self._conv(4, 6, 3, padding=1))
        self.branch3 = nn.Sequential(conv_block(2, 1), self._conv(2, 4, (1, 5), padding=(0, 2)), self._conv(4, 4, (5, 1), padding=(2, 0)))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1, ceil_mode=True), conv_block(2, 1))

    @staticmethod
    def _conv(cin, cout, kernel_size, **kwargs: Any):
        return nn.Sequential(nn.Conv2d(cin, cout, kernel_size, bias=False, **kwargs), nn.BatchNorm2d(cout, eps=0.001), nn.ReLU())

    def _forward(self, x) -> List[Tensor]:
        return [self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)]

    def forward(self, x):
        outputs = self._forward(x)
        return torch.cat(outputs, 1)


class GoogLeNet(nn.Module):
    def __init__(self, aux_logits=True):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2)
        self.a, self.b = InceptionBranch(8), InceptionBranch(16)
        self.aux = nn.Linear(16, 10) if aux_logits else None
        self.fc = nn.Linear(16, 10)
        self.aux_logits = aux_logits

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = F.max_pool2d(x, kernel_size=3, stride=2)
        x = self.a(x)
        aux_defined = self.training and self.aux_logits
        aux = self.aux(x.mean(dim=(2, 3))) if aux_defined else None
        x = F.avg_pool2d(self.b(x), kernel_size=x.shape[2:]).flatten(1)
        x = self.fc(x)
        if aux is not None:
            return {"logits": x, "aux": aux}
        return {"logits": x}


def googlenet_loss(model, out, inputs):
    target = torch.tensor([1, 2])
    loss = F.cross_entropy(out["logits"], target)
    if "aux" in out:
        loss = loss + 0.3 * F.cross_entropy(out["aux"], target)
    return loss


class CBAM(nn.Module):
    """Channel and spatial attention with group and instance norms, and a local response norm."""

    def __init__(self, c=8):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.GroupNorm(2, c), nn.LeakyReLU(0.1, inplace=True),
                                  nn.LocalResponseNorm(3), nn.Conv2d(c, c, 3, padding="same", padding_mode="reflect"),
                                  nn.InstanceNorm2d(c, affine=True), nn.PReLU(c))
        self.mlp = nn.Sequential(nn.Flatten(), nn.Linear(c, c // 2), nn.ReLU(), nn.Linear(c // 2, c))
        self.spatial = nn.Conv2d(2, 1, kernel_size=7, stride=1, padding=3, bias=False)
        self.fc = nn.Linear(c, 10)

    def forward(self, x):
        x = self.stem(x)
        avg = F.avg_pool2d(x, (x.size(2), x.size(3)), stride=(x.size(2), x.size(3)))
        mx = F.max_pool2d(x, (x.size(2), x.size(3)))
        scale = torch.sigmoid(self.mlp(avg) + self.mlp(mx)).unsqueeze(2).unsqueeze(3).expand_as(x)
        x = x * scale
        pooled = torch.cat((torch.max(x, 1)[0].unsqueeze(1), torch.mean(x, 1).unsqueeze(1)), dim=1)
        x = x * self.spatial(pooled).sigmoid()
        return self.fc(x.flatten(2).logsumexp(-1))


def images(size=32, n=2):
    return lambda draw: (draw.normal(n, 3, size, size),)


CASES = {
    "resnet18": Case(lambda: ResNet(BasicBlock, [2, 2, 2, 2], width=4), images(40, 4), cross_entropy, rtol=5e-3),
    "resnet50": Case(lambda: ResNet(Bottleneck, [1, 2, 1, 1], width=4), images(40, 4), smoothed, rtol=5e-3),
    "vgg": Case(lambda: VGG(CONFIGURATION), images(24), cross_entropy),
    "vgg_bn": Case(lambda: VGG(CONFIGURATION, batch_norm=True), images(24), cross_entropy, rtol=5e-3),
    "vgg_dropout": Case(lambda: VGG(CONFIGURATION, dropout=0.5), images(24), cross_entropy, draws=True),
    "squeezenet": Case(SqueezeNet, images(), cross_entropy),
    "densenet": Case(DenseNet, images(), cross_entropy, rtol=5e-3),
    "mobilenet_v2": Case(MobileNetV2, images(), cross_entropy, rtol=5e-3),
    "mobilenet_v3": Case(MobileNetV3, images(), smoothed, rtol=5e-3),
    "efficientnet": Case(EfficientNet, images(), cross_entropy, rtol=5e-3),
    "efficientnet_drop": Case(lambda: EfficientNet(drop=0.3), images(16, 4), cross_entropy, draws=True),
    "shufflenet": Case(ShuffleNet, images(), cross_entropy, rtol=5e-3),
    "convnext": Case(ConvNeXt, images(), cross_entropy),
    "googlenet": Case(GoogLeNet, images(24), googlenet_loss, rtol=5e-3),
    "cbam": Case(CBAM, images(12), cross_entropy),
}
