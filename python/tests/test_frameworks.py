"""Training frameworks: Lightning, Accelerate and the Hugging Face Trainer work with an unchanged loader."""

import pytest

from conftest import COUNT, optional

torch = optional("torch")

from tensilo.torch import Dataset, Loader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def made(mixed):
    return Loader(mixed, 20, columns=["emb", "label"], casts={"emb": "f32"}, order="shuffled", seed=1)


@pytest.fixture
def expected(mixed):
    """The labels of two epochs, batch by batch."""
    loader = made(mixed)
    return [batch["label"].tolist() for _ in range(2) for batch in loader]


class Model(torch.nn.Module):
    """Returns a loss, and records the labels that it has seen."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.seen = []

    def forward(self, emb, label):
        self.seen.append(label.tolist())
        return {"loss": (self.layer(emb)[:, 0] - label).square().mean()}


def test_lightning_resumes_from_its_checkpoint(mixed, expected, tmp_path):
    lightning = optional("lightning")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-9)

    def trained(steps, checkpoint=None):
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = lightning.Trainer(
            max_steps=steps, accelerator="cpu", default_root_dir=tmp_path, enable_checkpointing=False, **quiet
        )
        module = Module()
        trainer.fit(module, made(mixed), ckpt_path=checkpoint)
        trainer.save_checkpoint(tmp_path / "last.ckpt")
        return module.model.seen

    first = trained(7)
    rest = trained(len(expected), tmp_path / "last.ckpt")
    assert first + rest == expected


def test_accelerate_keeps_the_state_of_a_loader(mixed, expected, tmp_path):
    accelerate = optional("accelerate")

    def begun():
        accelerator = accelerate.Accelerator(cpu=True)
        loader, model = made(mixed), Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        accelerator.register_for_checkpointing(loader)
        return accelerator, model, optimizer, loader

    accelerator, model, optimizer, loader = begun()
    for step, batch in enumerate(loader):
        accelerator.backward(model(**batch)["loss"])
        optimizer.step()
        if step == 6:
            break
    accelerator.save_state(tmp_path / "state")
    first = model.seen
    accelerator, model, optimizer, loader = begun()
    accelerator.load_state(tmp_path / "state")
    for _ in range(2):
        for batch in loader:
            model(**batch)
    assert first + model.seen == expected


@pytest.mark.parametrize("way", ["loader", "dataset"])
def test_a_trainer_of_hugging_face_takes_both(mixed, expected, tmp_path, way):
    transformers = optional("transformers")
    options = transformers.TrainingArguments(
        tmp_path, use_cpu=True, report_to=[], max_steps=30, learning_rate=1e-9, per_device_train_batch_size=20,
        remove_unused_columns=False, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return made(mixed)

    if way == "loader":
        trainer = Trainer(Model(), options)
    else:
        dataset = Dataset(mixed, ["emb", "label"], casts={"emb": "f32"})
        collate = torch.utils.data.default_collate
        trainer = transformers.Trainer(Model(), options, train_dataset=dataset, data_collator=collate)
    trainer.train()
    seen = trainer.model.seen
    assert len(seen) == 30
    if way == "loader":
        assert seen == expected[:30]
    else:
        assert sorted(label for labels in seen[:25] for label in labels) == list(range(COUNT))
