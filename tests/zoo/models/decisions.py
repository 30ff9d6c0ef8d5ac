"""Reinforcement learning: the networks and the losses of one update."""
import copy
import math
from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.zoo.case import Case

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class QNetwork(nn.Module):
    def __init__(self, n_observations=4, n_actions=2, dueling=False):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, n_actions)
        self.value = nn.Linear(16, 1) if dueling else None

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        advantage = self.layer3(x)
        if self.value is None:
            return advantage
        return self.value(x) + advantage - advantage.mean(dim=1, keepdim=True)


class DQN(nn.Module):
    """The loss of a batch of transitions, some of which end the episode; double-Q targets."""

    def __init__(self, gamma=0.99, tau=0.1):
        super().__init__()
        self.policy_net = QNetwork(dueling=True)
        self.target_net = QNetwork(dueling=True)
        self.target_net.load_state_dict(self.policy_net.state_dict())
        for p in self.target_net.parameters():
            p.requires_grad = False
        self.gamma, self.tau = gamma, tau

    def forward(self, state, action, reward, next_state, done):
        state_action_values = self.policy_net(state).gather(1, action)
        with torch.no_grad():
            best = self.policy_net(next_state).max(1).indices.unsqueeze(1)
            next_values = self.target_net(next_state).gather(1, best).squeeze(1)
            next_values = next_values.masked_fill(done, 0.0)
        expected = (next_values * self.gamma) + reward
        return F.smooth_l1_loss(state_action_values, expected.unsqueeze(1)), state_action_values


def dqn_inputs(d):
    return d.normal(6, 4), d.integers(2, 6, 1), d.normal(6), d.normal(6, 4), d.mask(6, keep=0.3)


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class PPO(nn.Module):
    """Advantages by a backward loop, the clipped surrogate, a clipped value loss, the entropy bonus."""

    def __init__(self, gamma=0.99, lam=0.95, clip_coef=0.2):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 8)), nn.Tanh(), layer_init(nn.Linear(8, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 8)), nn.Tanh(), layer_init(nn.Linear(8, 3), std=0.01))
        self.gamma, self.lam, self.clip_coef = gamma, lam, clip_coef

    def forward(self, obs, actions, old_logprob, rewards, dones):
        values = self.critic(obs).squeeze(-1)
        with torch.no_grad():
            advantages = torch.zeros_like(rewards)
            lastgaelam = 0
            for t in reversed(range(rewards.shape[0] - 1)):
                nextnonterminal = 1.0 - dones[t + 1]
                delta = rewards[t] + self.gamma * values[t + 1] * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + self.gamma * self.lam * nextnonterminal * lastgaelam
            returns = advantages + values
        logits = self.actor(obs)
        logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        newlogprob = logits.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)
        entropy = -(logits.exp() * logits).sum(-1)
        logratio = newlogprob - old_logprob
        ratio = logratio.exp()
        mb_advantages = advantages.flatten()
        mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
        pg_loss1 = -mb_advantages * ratio
        pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - self.clip_coef, 1 + self.clip_coef)
        pg_loss = torch.max(pg_loss1, pg_loss2).mean()
        v_loss = 0.5 * ((values.view(-1) - returns.view(-1)) ** 2).mean()
        return pg_loss - 0.01 * entropy.mean() + v_loss * 0.5, advantages, returns


def ppo_inputs(d):
    return d.normal(8, 4), d.integers(3, 8), d.normal(8, scale=0.1) - 1.1, d.normal(8), d.mask(8, keep=0.2).float()


LOG_STD_MAX, LOG_STD_MIN = 2, -5


class SAC(nn.Module):
    """A squashed Gaussian actor (noise given), twin critics, a learned temperature."""

    def __init__(self, obs=3, act=2):
        super().__init__()
        self.fc1, self.fc_mean, self.fc_logstd = nn.Linear(obs, 12), nn.Linear(12, act), nn.Linear(12, act)
        self.qf = nn.ModuleList([nn.Sequential(nn.Linear(obs + act, 12), nn.ReLU(), nn.Linear(12, 1)) for _ in range(2)])
        self.qf_target = copy.deepcopy(self.qf).requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.zeros(1))
        self.register_buffer("action_scale", torch.tensor([1.0, 2.0], dtype=torch.float32))
        self.register_buffer("action_bias", torch.tensor([0.0, 0.5], dtype=torch.float32))
        self.target_entropy = -float(act)

    def get_action(self, x, noise):
        x = F.relu(self.fc1(x))
        mean, log_std = self.fc_mean(x), torch.tanh(self.fc_logstd(x))
        log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (log_std + 1)
        std = log_std.exp()
        x_t = mean + std * noise
        y_t = torch.tanh(x_t)
        action = y_t * self.action_scale + self.action_bias
        log_prob = -((x_t - mean) ** 2) / (2 * std**2) - std.log() - math.log(math.sqrt(2 * math.pi))
        log_prob -= torch.log(self.action_scale * (1 - y_t.pow(2)) + 1e-6)
        return action, log_prob.sum(1, keepdim=True)

    def forward(self, obs, actions, rewards, next_obs, dones, noise):
        alpha = self.log_alpha.exp().item() if False else self.log_alpha.exp().detach()
        with torch.no_grad():
            next_actions, next_log_pi = self.get_action(next_obs, noise)
            q_next = torch.min(*[q(torch.cat([next_obs, next_actions], 1)) for q in self.qf_target]) - alpha * next_log_pi
            target = rewards.flatten() + (1 - dones.flatten()) * 0.99 * q_next.view(-1)
        qs = [q(torch.cat([obs, actions], 1)).view(-1) for q in self.qf]
        qf_loss = sum(F.mse_loss(q, target) for q in qs)
        pi, log_pi = self.get_action(obs, noise)
        min_qf_pi = torch.min(torch.stack([q(torch.cat([obs, pi], 1)) for q in self.qf]), dim=0).values
        actor_loss = ((alpha * log_pi) - min_qf_pi).mean()
        alpha_loss = (-self.log_alpha.exp() * (log_pi + self.target_entropy).detach()).mean()
        return qf_loss + actor_loss + alpha_loss, target


def sac_inputs(d):
    return d.normal(5, 3), d.normal(5, 2), d.normal(5), d.normal(5, 3), d.mask(5, keep=0.2).float(), d.normal(5, 2)


class DecisionTransformer(nn.Module):
    """Returns, states and actions interleaved into one causal sequence."""

    def __init__(self, state=3, act=2, h=8, T=4):
        super().__init__()
        self.embed_timestep = nn.Embedding(T, h)
        self.embed_return, self.embed_state, self.embed_action = nn.Linear(1, h), nn.Linear(state, h), nn.Linear(act, h)
        layer = nn.TransformerEncoderLayer(h, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1)
        self.predict_action = nn.Sequential(*([nn.Linear(h, act)] + ([nn.Tanh()] if True else [])))
        self.h = h

    def forward(self, states, actions, returns, timesteps):
        B, T = states.shape[0], states.shape[1]
        time = self.embed_timestep(timesteps)
        r, s, a = self.embed_return(returns) + time, self.embed_state(states) + time, self.embed_action(actions) + time
        stacked = torch.stack((r, s, a), dim=1).permute(0, 2, 1, 3).reshape(B, 3 * T, self.h)
        mask = nn.Transformer.generate_square_subsequent_mask(3 * T)
        x = self.encoder(stacked, mask=mask, is_causal=True)
        x = x.reshape(B, T, 3, self.h).permute(0, 2, 1, 3)
        return self.predict_action(x[:, 1])


CASES = {
    "dqn": Case(DQN, dqn_inputs, lambda m, out, i: out[0], compiled=True, frozen=("target_net",)),
    "ppo": Case(PPO, ppo_inputs, lambda m, out, i: out[0], compiled=True),
    "sac": Case(SAC, sac_inputs, lambda m, out, i: out[0], frozen=("qf_target",)),
    "decision_transformer": Case(DecisionTransformer, lambda d: (d.normal(2, 4, 3), d.normal(2, 4, 2), d.normal(2, 4, 1), torch.arange(4).repeat(2, 1))),
}
