"""The secrets that every test of redaction plants: one list, each as it stands in logs of agents.

Values are made up and put together here, so that no scanner takes this file for a leak.
"""

from typing import Final, NamedTuple


class Planted(NamedTuple):
    """One secret, and a line in which it stands."""

    name: str
    secret: str
    """What must be in no written file, log or message."""
    kind: str
    around: str
    """The line, with ``{}`` where the secret stands."""

    @property
    def line(self) -> str:
        """The line as it is planted."""
        return self.around.replace("{}", self.secret)


_HEX = "9f86d081884c7d659a2feaa0c55ad015"
_BASE64 = "Kp3xVt8Zq1Lw5Rb7Nc2Hm6Jd9Fs4Gy0T"
_PEM = "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo"

PLANTED: Final = (
    Planted("openai", "sk-" + "proj-" + "Ab3" * 12, "api_key", "using {} for gpt"),
    Planted("anthropic", "sk-ant-" + "api03-" + "x9Y" * 10, "api_key", "client({})"),
    Planted("aws-id", "AKIA" + "IOSFODNN7EXAMPLE", "api_key", "aws_access_key_id = {}"),
    Planted("aws-secret", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzzKEYq2", "secret_value",
            "aws_secret_access_key = {}"),
    Planted("aws-secret-set", "uJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzzKEYq3", "secret_value",
            "aws configure set aws_secret_access_key {}"),
    Planted("google", "AIza" + "Sy" * 17 + "x1", "api_key", "GET /v1/models?key={}&alt=json"),
    Planted("github", "ghp_" + "a1B2" * 9, "api_key", "git push https://{}@github.example/x"),
    Planted("gitlab", "glpat-" + "x7Kq" * 5, "api_key", "PRIVATE-TOKEN: {}"),
    Planted("hugging-face", "hf_" + "qW3" * 12, "api_key", "login --token {}"),
    Planted("slack", "xoxb-" + "123456789012-abcdefABCDEF", "api_key", "slack {}"),
    Planted("slack-hook", "T01ABCDEF/B02GHIJKL/" + "x8Yz" * 6, "api_key",
            "curl -X POST https://hooks.slack.com/services/{}"),
    Planted("stripe", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "api_key", "Stripe('{}')"),
    Planted("groq", "gsk_" + "Zx4" * 14, "api_key", "groq {}"),
    Planted("npm", "npm_" + "aB3" * 12, "api_key", "//registry.npmjs.org/:_authToken={}"),
    Planted("npm-basic", "dXNlcjpw" + "YXNzd29yZA==", "secret_value", "//registry.corp.io/:_auth={}"),
    Planted("pypi", "pypi-" + "AgEIcHlwaS5vcmc" + "aB3" * 20, "api_key", "  password: {}"),
    Planted("telegram", "8412345678" + ":AAE" + "xK9z" * 8, "api_key", "GET /bot{}/getMe"),
    Planted("sendgrid", "SG." + "aB3" * 7 + "x." + "Kq8" * 14 + "z", "api_key", "sendgrid {}"),
    Planted("masked", "sk-" + "fake****0000", "masked_key", "Incorrect API key provided: {}. See the docs."),
    Planted("bearer", "abc." + "def-123456", "bearer_token", "Authorization: Bearer {}"),
    Planted("basic", "YWRtaW46" + "aHVudGVyMg==", "bearer_token", "headers = {'Authorization': 'Basic {}'}"),
    Planted("x-api-key", "q7w8e9r0" + "t1y2u3", "secret_value", "curl -H 'x-api-key: {}' https://api.corp.io"),
    Planted("cookie", "sessionid=" + "k3j4h5g6; csrftoken=m7n8b9", "cookie", "Cookie: {}"),
    Planted("set-cookie", "sid=" + "s%3Aabcdefgh.ijkl", "cookie", "< Set-Cookie: {}; Path=/; HttpOnly"),
    Planted("jwt", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".dBjftJeZ4CVPmB92K27u", "json_web_token",
            "saw {} in it"),
    Planted("private-key", f"-----BEGIN RSA PRIVATE KEY-----\n{_PEM}\n-----END RSA PRIVATE " + "KEY-----",
            "private_key", "{}"),
    Planted("url", "user1:" + "pass1", "url_credentials", "postgres://{}@db.corp.io:5432/x"),
    Planted("redis", ":s3cr3t" + "redis", "url_credentials", "redis://{}@cache:6379/0"),
    Planted("signature", "kLm8%2FnOp" + "QrS%3D", "secret_value", "https://x.blob.core.windows.net/c?sv=2024&sig={}"),
    Planted("query", "zz9plural" + "zalpha", "secret_value", "GET https://api.corp.io/v2/items?api_key={}&page=2"),
    Planted("short-password", "hun" + "ter2", "secret_value", "password: '{}'"),
    Planted("quoted-password", 'p4s"s\\w' + "0rd'x", "secret_value", "SET PASSWORD = `{}`"),
    Planted("mysql", "s3kr1t" + "pw", "secret_value", "mysql -u root -p{} -e 'show tables'"),
    Planted("curl-user", "deploy:" + "c0rrecth0rse", "secret_value", "curl -u {} https://ci.corp.io/job"),
    Planted("env", "correcthorse" + "battery", "secret_value", "export DB_PASSWORD={}"),
    Planted("azure", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFs" + "uFq2UVErCz4I6tq/K1SZFPTOtr/KBHBek==",
            "secret_value", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=y"),
    Planted("gcp-key-id", _HEX + "0badf00d", "secret_value", '"private_key_id": "{}"'),
    Planted("hex-token", _HEX[::-1], "secret_value", "deploy_key={}"),
    Planted("entropy", _BASE64, "secret_value", 'signing_key = "{}"'),
    Planted("e-mail", "ada.lovelace" + "@mail.corp.io", "email", "Author: Ada <{}>"),
    Planted("home-path", "quintus" + "fabius", "home_path", "File /home/{}/agent/run.py"),
)  # fmt: skip
"""At least forty; the last two are no secrets but persons."""
