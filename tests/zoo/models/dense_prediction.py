"""Segmentation and detection."""
from collections import OrderedDict
from typing import Dict, List, Tuple

import torch
from torch import nn
from torch.nn import functional as F

from tests.zoo.case import Case


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diff_y = x2.size()[2] - x1.size()[2]
        diff_x = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels=3, n_classes=2, bilinear=False, width=4):
        super(UNet, self).__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, width)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, width * 2))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width * 2, width * 4 // factor))
        self.up1 = Up(width * 4, width * 2 // factor, bilinear)
        self.up2 = Up(width * 2, width, bilinear)
        self.outc = nn.Conv2d(width, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def dice_loss(model, logits, inputs):
    with torch.no_grad():
        target = (inputs[0][:, 0] > 0).long()
    onehot = F.one_hot(target, num_classes=logits.size(1)).permute(0, 3, 1, 2).float()
    probability = F.softmax(logits, dim=1)
    sum_dim = (-1, -2)
    inter = 2 * (probability * onehot).sum(dim=sum_dim)
    sets_sum = probability.sum(dim=sum_dim) + onehot.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    dice = (inter + 1e-6) / (sets_sum + 1e-6)
    weight = torch.tensor([0.3, 0.7])
    return F.cross_entropy(logits, target, weight=weight, ignore_index=-1) + 1 - dice.mean()


class ASPPPooling(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Conv2d(in_channels, out_channels, 1, bias=True), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.shape[-2:]
        for mod in self:
            x = mod(x)
        return F.interpolate(x, size=size, mode="bilinear", align_corners=False)


class DeepLab(nn.Module):
    def __init__(self, rates=(2, 4, 6), width=8, classes=5):
        super().__init__()
        self.backbone = nn.Sequential(OrderedDict(
            conv=nn.Conv2d(3, width, 3, stride=2, padding=1), bn=nn.BatchNorm2d(width), act=nn.ReLU(),
            conv2=nn.Conv2d(width, width, 3, padding=2, dilation=2)))
        modules = [nn.Sequential(nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())]
        for rate in tuple(rates):
            modules.append(nn.Sequential(nn.Conv2d(width, width, 3, padding=rate, dilation=rate, bias=False), nn.BatchNorm2d(width), nn.ReLU()))
        modules.append(ASPPPooling(width, width))
        self.convs = nn.ModuleList(modules)
        self.project = nn.Sequential(nn.Conv2d(len(self.convs) * width, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout(0.0))
        self.classifier = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        input_shape = x.shape[-2:]
        features = self.backbone(x)
        _res = []
        for conv in self.convs:
            _res.append(conv(features))
        res = torch.cat(_res, dim=1)
        x = self.classifier(self.project(res))
        result = OrderedDict()
        result["out"] = F.interpolate(x, size=input_shape, mode="bilinear", align_corners=False)
        return result


def deeplab_loss(model, out, inputs):
    target = (inputs[0].sum(1) * 2).long().clamp(0, 4)
    target[:, 0] = 255
    return nn.CrossEntropyLoss(ignore_index=255)(out["out"], target)


class FPN(nn.Module):
    """A pyramid over a strided stack, with a RetinaNet-like head and the focal loss."""

    def __init__(self, channels=(8, 16, 32), out_channels=8, anchors=3, classes=4):
        super().__init__()
        self.body = nn.ModuleDict()
        cin = 3
        for i, c in enumerate(channels):
            self.body[f"c{i}"] = nn.Sequential(nn.Conv2d(cin, c, 3, 2, 1), nn.ReLU(inplace=True))
            cin = c
        self.inner_blocks = nn.ModuleList(nn.Conv2d(c, out_channels, 1) for c in channels)
        self.layer_blocks = nn.ModuleList([nn.Conv2d(out_channels, out_channels, 3, padding=1) for _ in channels])
        self.classes = classes
        self.cls_logits = nn.Conv2d(out_channels, anchors * classes, 3, padding=1)
        self.bbox_reg = nn.Conv2d(out_channels, anchors * 4, 3, padding=1)

    def pyramid(self, x: torch.Tensor) -> Dict[str, torch.Tensor]:
        found = OrderedDict()
        for name, layer in self.body.items():
            x = layer(x)
            found[name] = x
        names, xs = list(found.keys()), list(found.values())
        last_inner = self.inner_blocks[-1](xs[-1])
        results = [self.layer_blocks[-1](last_inner)]
        for idx in range(len(xs) - 2, -1, -1):
            inner_lateral = self.inner_blocks[idx](xs[idx])
            inner_top_down = F.interpolate(last_inner, size=inner_lateral.shape[-2:], mode="nearest")
            last_inner = inner_lateral + inner_top_down
            results.insert(0, self.layer_blocks[idx](last_inner))
        results.append(F.max_pool2d(results[-1], 1, 2, 0))
        return OrderedDict([(k, v) for k, v in zip(names + ["pool"], results)])

    def forward(self, x) -> Tuple[torch.Tensor, torch.Tensor]:
        all_cls: List[torch.Tensor] = []
        all_box: List[torch.Tensor] = []
        for feature in self.pyramid(x).values():
            logits = self.cls_logits(feature)
            n, _, h, w = logits.shape
            logits = logits.view(n, -1, self.classes, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, self.classes)
            all_cls.append(logits)
            box = self.bbox_reg(feature)
            all_box.append(box.view(n, -1, 4, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, 4))
        return torch.cat(all_cls, dim=1), torch.cat(all_box, dim=1)


def focal_loss(model, out, inputs, alpha: float = 0.25, gamma: float = 2):
    logits, boxes = out
    targets = torch.zeros_like(logits)
    targets[:, ::7, 1] = 1.0
    p = torch.sigmoid(logits)
    ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = ce * ((1 - p_t) ** gamma)
    if alpha >= 0:
        alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
        loss = alpha_t * loss
    foreground = targets.sum(-1) > 0
    num = max(1, foreground.sum().item())
    return loss.sum() / num + F.smooth_l1_loss(boxes[foreground], torch.ones_like(boxes[foreground]), beta=1 / 9, reduction="sum") / num


def autopad(k, p=None):
    return k // 2 if p is None else p


class Conv(nn.Module):
    default_act = nn.SiLU()

    def __init__(self, c1, c2, k=1, s=1, p=None, g=1, act=True):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, autopad(k, p), groups=g, bias=False)
        self.bn = nn.BatchNorm2d(c2)
        self.act = self.default_act if act is True else act if isinstance(act, nn.Module) else nn.Identity()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class C3(nn.Module):
    def __init__(self, c1, c2, n=1, e=0.5):
        super().__init__()
        c_ = int(c2 * e)
        self.cv1, self.cv2, self.cv3 = Conv(c1, c_), Conv(c1, c_), Conv(2 * c_, c2, 1)
        self.m = nn.Sequential(*(nn.Sequential(Conv(c_, c_, 1, 1), Conv(c_, c_, 3, 1)) for _ in range(n)))

    def forward(self, x):
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class SPPF(nn.Module):
    def __init__(self, c1, c2, k=5):
        super().__init__()
        self.cv1, self.cv2 = Conv(c1, c1 // 2), Conv(c1 * 2, c2)
        self.m = nn.MaxPool2d(kernel_size=k, stride=1, padding=k // 2)

    def forward(self, x):
        x = self.cv1(x)
        y1 = self.m(x)
        y2 = self.m(y1)
        return self.cv2(torch.cat((x, y1, y2, self.m(y2)), 1))


class Detect(nn.Module):
    stride = None
    export = False

    def __init__(self, nc=3, anchors=(), ch=()):
        super().__init__()
        self.nc, self.no, self.nl, self.na = nc, nc + 5, len(anchors), len(anchors[0]) // 2
        self.grid = [torch.zeros(1)] * self.nl
        self.anchor_grid = [torch.zeros(1)] * self.nl
        self.register_buffer("anchors", torch.tensor(anchors).float().view(self.nl, -1, 2))
        self.m = nn.ModuleList(nn.Conv2d(x, self.no * self.na, 1) for x in ch)

    def forward(self, x):
        z = []
        for i in range(self.nl):
            x[i] = self.m[i](x[i])
            bs, _, ny, nx = x[i].shape
            x[i] = x[i].view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
            if not self.training:
                if self.grid[i].shape[2:4] != x[i].shape[2:4]:
                    self.grid[i], self.anchor_grid[i] = self._make_grid(nx, ny, i)
                y = x[i].sigmoid()
                xy = (y[..., 0:2] * 2.0 - 0.5 + self.grid[i]) * self.stride[i]
                wh = (y[..., 2:4] * 2) ** 2 * self.anchor_grid[i]
                z.append(torch.cat((xy, wh, y[..., 4:]), -1).view(bs, -1, self.no))
        return x if self.training else (torch.cat(z, 1), x)

    def _make_grid(self, nx=20, ny=20, i=0):
        d, t = self.anchors[i].device, self.anchors[i].dtype
        shape = 1, self.na, ny, nx, 2
        y, x = torch.arange(ny, device=d, dtype=t), torch.arange(nx, device=d, dtype=t)
        yv, xv = torch.meshgrid(y, x, indexing="ij")
        grid = torch.stack((xv, yv), 2).expand(shape) - 0.5
        anchor_grid = (self.anchors[i] * self.stride[i]).view((1, self.na, 1, 1, 2)).expand(shape)
        return grid, anchor_grid


class YOLO(nn.Module):
    def __init__(self):
        super().__init__()
        self.b1 = nn.Sequential(Conv(3, 8, 6, 2, 2), Conv(8, 8, 3, 2), C3(8, 8))
        self.b2 = nn.Sequential(Conv(8, 16, 3, 2), SPPF(16, 16))
        self.lateral = Conv(16, 8)
        self.up = nn.Upsample(None, 2, "nearest")
        self.join = C3(16, 8)
        self.detect = Detect(3, anchors=[[10, 13, 16, 30], [30, 61, 62, 45]], ch=(8, 16))
        self.detect.stride = torch.tensor([4.0, 8.0])
        self.detect.anchors /= self.detect.stride.view(-1, 1, 1)

    def forward(self, x):
        p3 = self.b1(x)
        p4 = self.b2(p3)
        n = self.join(torch.cat([self.up(self.lateral(p4)), p3], 1))
        return self.detect([n, p4])


def yolo_loss(model, out, inputs):
    preds = out if model.training else out[1]
    loss = torch.zeros(1)
    for i, p in enumerate(preds):
        b, a, gj, gi = torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1])
        tobj = torch.zeros_like(p[..., 0])
        ps = p[b, a, gj, gi]
        pxy = ps[:, :2].sigmoid() * 2 - 0.5
        pwh = (ps[:, 2:4].sigmoid() * 2) ** 2
        pbox = torch.cat((pxy, pwh), 1)
        iou = box_iou(pbox, torch.tensor([[0.3, 0.4, 1.0, 0.8]]).repeat(3, 1))
        loss += (1.0 - iou).mean()
        tobj[b, a, gj, gi] = iou.detach().clamp(0).type(tobj.dtype)
        t = torch.full_like(ps[:, 5:], 0.05)
        t[range(3), torch.tensor([0, 2, 1])] = 0.95
        loss += nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.5]))(ps[:, 5:], t)
        loss += F.binary_cross_entropy_with_logits(p[..., 4], tobj)
    return loss.squeeze(0) if loss.dim() else loss


def box_iou(a, b, eps=1e-7):
    """CIoU of boxes (n, 4) given as centre and size."""
    (x1, y1, w1, h1), (x2, y2, w2, h2) = a.chunk(4, -1), b.chunk(4, -1)
    b1_x1, b1_x2, b1_y1, b1_y2 = x1 - w1 / 2, x1 + w1 / 2, y1 - h1 / 2, y1 + h1 / 2
    b2_x1, b2_x2, b2_y1, b2_y2 = x2 - w2 / 2, x2 + w2 / 2, y2 - h2 / 2, y2 + h2 / 2
    inter = (b1_x2.minimum(b2_x2) - b1_x1.maximum(b2_x1)).clamp(0) * (b1_y2.minimum(b2_y2) - b1_y1.maximum(b2_y1)).clamp(0)
    union = w1 * h1 + w2 * h2 - inter + eps
    iou = inter / union
    cw = b1_x2.maximum(b2_x2) - b1_x1.minimum(b2_x1)
    ch = b1_y2.maximum(b2_y2) - b1_y1.minimum(b2_y1)
    c2 = cw.pow(2) + ch.pow(2) + eps
    rho2 = ((b2_x1 + b2_x2 - b1_x1 - b1_x2).pow(2) + (b2_y1 + b2_y2 - b1_y1 - b1_y2).pow(2)) / 4
    v = (4 / torch.pi**2) * (torch.atan(w2 / h2) - torch.atan(w1 / h1)).pow(2)
    with torch.no_grad():
        alpha = v / (v - iou + (1 + eps))
    return (iou - (rho2 / c2 + v * alpha)).squeeze(-1)


class Hourglass(nn.Module):
    """Recursive encoder-decoder for key points, heat maps read by a soft argmax."""

    def __init__(self, depth=2, c=6, joints=3):
        super().__init__()
        self.inp = nn.Conv2d(3, c, 3, padding=1)
        self.depth = depth
        self.skips = nn.ModuleList([nn.Conv2d(c, c, 1) for _ in range(depth)])
        self.downs = nn.ModuleList([nn.Conv2d(c, c, 3, padding=1) for _ in range(depth)])
        self.ups = nn.ModuleList([nn.Conv2d(c, c, 3, padding=1) for _ in range(depth)])
        self.shuffle = nn.Sequential(nn.Conv2d(c, joints * 4, 1), nn.PixelShuffle(2))

    def _level(self, n, x):
        if n == 0:
            return x
        skip = F.elu(self.skips[n - 1](x))
        low = self._level(n - 1, F.elu(self.downs[n - 1](F.max_pool2d(x, 2))))
        low = F.softplus(self.ups[n - 1](low))
        return skip + F.interpolate(low, scale_factor=2, mode="bicubic", align_corners=False)

    def forward(self, x):
        heat = self.shuffle(self._level(self.depth, self.inp(x)))
        b, j, h, w = heat.shape
        p = heat.reshape(b, j, -1).softmax(-1).reshape(b, j, h, w)
        xs = (p.sum(2) * torch.linspace(0, 1, w)).sum(-1)
        ys = (p.sum(3) * torch.linspace(0, 1, h)).sum(-1)
        return torch.stack([xs, ys], dim=-1), heat


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2, stride=2), nn.ReLU(True), nn.Conv2d(4, 4, 3), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(4 * 4 * 4, 8), nn.Tanh(), nn.Linear(8, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def forward(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 4 * 4 * 4)
        theta = self.fc_loc(xs).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


def images(size=32, n=2, c=3):
    return lambda draw: (draw.normal(n, c, size, size),)


CASES = {
    "unet": Case(UNet, images(18), dice_loss, compiled=True, rtol=5e-3),
    "unet_bilinear": Case(lambda: UNet(bilinear=True), images(18), dice_loss, rtol=5e-3),
    "deeplab": Case(DeepLab, images(24), deeplab_loss, rtol=5e-3),
    "fpn": Case(FPN, images(32), focal_loss),
    "yolo": Case(YOLO, images(32), yolo_loss, rtol=5e-3),
    "hourglass": Case(Hourglass, images(8)),
    "spatial_transformer": Case(SpatialTransformer, images(16, c=1)),
}
