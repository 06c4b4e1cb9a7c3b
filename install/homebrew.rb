# Written by install/package, which puts in where the sources are and what their checksum is.
class GitAynig < Formula
  desc "Crash-safe, auditable workflow engine in any Git repository"
  homepage "@URL@"
  url "@URL@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  depends_on "git"

  def install
    system "cargo", "install", *std_cargo_args
    system "cargo", "install", *std_cargo_args(path: "serve")
    man1.install Dir["man/*.1"]
    man7.install Dir["man/*.7"]
    bash_completion.install "install/completions/git-aynig.bash" => "git-aynig"
    zsh_completion.install "install/completions/git-aynig.zsh" => "_git-aynig"
    fish_completion.install "install/completions/git-aynig.fish"
  end

  test do
    system bin/"git-aynig", "demo"
  end
end
