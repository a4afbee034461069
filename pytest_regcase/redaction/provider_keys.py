"""What keys of known providers look like: one pattern a shape, told by its prefix.

Knows regular expressions only; knows nothing of what stands around a key. Must import nothing of ours. Each
pattern is bounded or ends with a run of one class of characters, so that no text takes more than linear time.
"""

from typing import Final

KEY_SHAPES: Final = (
    # Model providers. A lower-case name such as sk-learn-contrib-... is none of them.
    r"sk-(?=[a-z-]{0,40}[A-Z0-9_])[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter, LiteLLM, Langfuse
    r"(?:pk|rk)-lf-[A-Za-z0-9-]{16,}",
    r"AIza[0-9A-Za-z_-]{30,}",  # Google
    r"gsk_[A-Za-z0-9]{20,}",  # Groq
    r"csk-[A-Za-z0-9]{20,}",  # Cerebras
    r"xai-[A-Za-z0-9]{20,}",
    r"pplx-[A-Za-z0-9]{20,}",
    r"nvapi-[A-Za-z0-9_-]{20,}",
    r"r8_[A-Za-z0-9]{20,}",  # Replicate
    r"f(?:w|pk)_[A-Za-z0-9]{20,}",  # Fireworks
    r"tgp_v1_[A-Za-z0-9_-]{20,}",  # Together
    r"hf_[A-Za-z0-9]{20,}",
    r"api_org_[A-Za-z0-9]{20,}",
    r"esecret_[A-Za-z0-9]{20,}",  # Anyscale
    r"ABSK[A-Za-z0-9+/]{80,}={0,2}",  # Amazon Bedrock
    # What agents and evals use besides.
    r"lsv2_[a-z]{2}_[A-Za-z0-9_]{20,}",  # LangSmith
    r"ls__[A-Za-z0-9]{20,}",
    r"pylf_v\d_[A-Za-z0-9_]{20,}",  # Logfire
    r"tvly-[A-Za-z0-9-]{16,}",
    r"pcsk_[A-Za-z0-9_]{20,}",  # Pinecone
    r"fc-[0-9a-f]{32}",  # Firecrawl
    r"e2b_[0-9a-f]{32,}",
    r"(?:ak|as)-[A-Za-z0-9]{22}(?![A-Za-z0-9])",  # Modal
    # Clouds and hosts.
    r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}",  # AWS
    r"ya29\.[0-9A-Za-z_-]{16,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"1//0[A-Za-z0-9_-]{30,}",
    r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",  # Azure application secret
    r"LTAI[A-Za-z0-9]{12,}",
    r"do[oprt]_v1_[0-9a-f]{32,}",
    r"HRKU-[A-Za-z0-9_-]{30,}",
    r"dapi[0-9a-f]{32}",  # Databricks
    r"(?:hvs|hvb|hvr)\.[A-Za-z0-9_-]{20,}",  # Vault
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}",  # Terraform
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_-]{30,}",  # Doppler
    r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}",
    r"sb(?:p|_secret)_[A-Za-z0-9_-]{20,}",  # Supabase
    # Code and packages.
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|ptt|rt|dt|ft|soat|cbt|imt|agent|oas)-[A-Za-z0-9_-]{16,}",
    r"GR1348941[A-Za-z0-9_-]{20,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{16,}",
    r"rubygems_[0-9a-f]{48}",
    r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])",
    r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
    # Services.
    r"xox[abceoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"xapp-\d-[A-Za-z0-9-]{10,}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}",  # Stripe
    r"whsec_[A-Za-z0-9+/]{16,}={0,2}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?:SK|AC)[0-9a-f]{32}",  # Twilio
    r"key-[0-9a-f]{32}",  # Mailgun
    r"[0-9a-f]{32}-us\d{1,2}",  # Mailchimp
    r"\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",  # Telegram
    r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",  # Discord
    r"sq0(?:csp|atp)-[0-9A-Za-z_-]{22,}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"ATATT3[A-Za-z0-9_=-]{20,}",  # Atlassian
    r"lin_api_[A-Za-z0-9]{20,}",
    r"ntn_[A-Za-z0-9]{30,}",
    r"figd_[A-Za-z0-9_-]{20,}",
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",  # Airtable
    r"sntry[su]_[A-Za-z0-9+/=_-]{20,}",
    r"glsa_[A-Za-z0-9_]{20,}",  # Grafana
    r"glc_[A-Za-z0-9+/=]{20,}",
    r"NRAK-[A-Z0-9]{20,}",
    r"PMAK-[0-9a-f-]{20,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
)
"""Each begins where a word begins."""
