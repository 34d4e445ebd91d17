"""What an error says to do is done as it says, and leads on."""



from cli.test_advice import NETWORK, TRAINING, ZOO, scene, typed

TUNE = ("tune", "{images}", *NETWORK, *TRAINING, "--no-store")
RANK = ("rank", "{images}", *ZOO, "--workers", "1", "--device", "cpu", "--scores", "logme")
assert scene, typed
