# nix build 'git+file:///path/to/git-aynig?dir=install'
{
  description = "A crash-safe, auditable workflow engine in any Git repository, with no standing process";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      manifest = (builtins.fromTOML (builtins.readFile ../Cargo.toml)).package;
      package = pkgs: pkgs.rustPlatform.buildRustPackage {
        pname = manifest.name;
        version = manifest.version;
        src = ../.;
        cargoLock.lockFile = ../Cargo.lock;
        cargoBuildFlags = [ "-p" "git-aynig" "-p" "git-aynig-serve" ];
        nativeBuildInputs = [ pkgs.installShellFiles pkgs.makeWrapper ];
        # The tests want Gits, sandboxes and namespaces of their own: '.ci/run' is for them.
        doCheck = false;
        postInstall = ''
          installManPage man/*.1 man/*.7
          installShellCompletion --bash --name git-aynig install/completions/git-aynig.bash
          installShellCompletion --zsh --name _git-aynig install/completions/git-aynig.zsh
          installShellCompletion --fish --name git-aynig.fish install/completions/git-aynig.fish
          wrapProgram $out/bin/git-aynig --suffix PATH : ${pkgs.lib.makeBinPath [ pkgs.git ]}
        '';
        meta = {
          description = manifest.description;
          license = with pkgs.lib.licenses; [ mit asl20 ];
          mainProgram = "git-aynig";
        };
      };
    in {
      packages = builtins.listToAttrs (map (system: {
        name = system;
        value.default = package nixpkgs.legacyPackages.${system};
      }) systems);
    };
}
